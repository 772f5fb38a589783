#!/bin/sh
# Runs the tests of real cgroups (cgroups_test.cc) in a kernel of its own, where this machine has none of version 2 to
# give: cgroups_in_uml.sh AGENT_DEVICE_TESTS. Needs Debian's package user-mode-linux; takes some ten seconds.
set -eu
folder=$(mktemp -d -p /var/tmp)  # /tmp is another one in there
trap 'rm -rf "$folder"' EXIT
cp "$1" "$folder/tests"
cat > "$folder/init" <<INIT
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo "+memory +cpu +pids" > /sys/fs/cgroup/cgroup.subtree_control
"$folder/tests" --gtest_filter='RealCgroups.*' --gtest_color=no
echo "ended: \$?"
sync
echo o > /proc/sysrq-trigger
sleep 60
INIT
chmod +x "$folder/init"
timeout 300 linux.uml rootfstype=hostfs ro mem=700M quiet "init=$folder/init" con=null con0=fd:0,fd:1 \
  </dev/null > "$folder/log" 2>&1 || true
grep -v -i 'selinux\|mmapper\|ubd' "$folder/log" | tr -d '\r'
grep -q 'ended: 0' "$folder/log" && ! grep -q SKIPPED "$folder/log"
