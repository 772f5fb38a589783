"""A real HDFS of this machine: Hadoop's own name nodes and data nodes as processes, which a test may stop and kill."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import urllib.parse
import urllib.request

import pytest
from emulators import Emulator, files_of

JAVA = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dhadoop.root.logger=INFO,console"]
LOG = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%m%n
"""
USER = "owner"  # who started HDFS may do everything: the tests are somebody else
SERVER = "org.apache.hadoop.hdfs.server"


def jars():
    """The first call of all fetches them."""
    done = subprocess.run([pathlib.Path(__file__).with_name("hadoop.sh")], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"Hadoop cannot be had: {done.stderr.strip()[-300:]}")
    return sorted(str(jar) for jar in pathlib.Path(done.stdout.split()[-1]).glob("*.jar"))


def write_settings(path, **settings):
    items = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
    path.write_text(f"<?xml version='1.0'?><configuration>{items}</configuration>")


def free_ports(count):
    taken = [socket.socket() for _ in range(count)]
    try:
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in taken]
    finally:
        for each in taken:
            each.close()


class Process(Emulator):
    def __init__(self, hdfs, program, *arguments):
        command = ["java", *JAVA, "-cp", os.pathsep.join([str(hdfs.conf), *hdfs.jars]), program, *arguments]
        super().__init__(command, HADOOP_USER_NAME=USER, HADOOP_CONF_DIR=str(hdfs.conf))

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)


class Hdfs:
    """One name node, or two of the name service `lake` of which the second is active."""

    def __init__(self, folder, data_nodes=2, name_nodes=1):
        self.folder = folder
        self.jars = jars()
        self.conf = folder / "conf"
        self.conf.mkdir(parents=True)
        (self.conf / "log4j.properties").write_text(LOG)
        self.name_nodes, self.data_nodes = [], {}
        self.is_pair = name_nodes == 2
        self.web = free_ports(name_nodes)
        self.rpc = free_ports(name_nodes)
        self._configure()
        try:
            self._start(data_nodes)
        except BaseException:
            self.close()
            raise

    def _configure(self):
        hdfs = {
            "dfs.replication": 2, "dfs.blocksize": 1 << 20, "dfs.ls.limit": 3, "dfs.namenode.delegation.token.always-use": "true",
            "dfs.client.socket-timeout": 3000,  # of a data node that reads from another one
        }  # fmt: skip
        if not self.is_pair:
            hdfs |= {"dfs.namenode.http-address": f"127.0.0.1:{self.web[0]}", "dfs.namenode.name.dir": self.folder / "name0"}
            write_settings(self.conf / "core-site.xml", **{"fs.defaultFS": f"hdfs://127.0.0.1:{self.rpc[0]}"})
        else:
            hdfs |= {"dfs.nameservices": "lake", "dfs.ha.namenodes.lake": "nn0, nn1", "dfs.namenode.shared.edits.dir": f"file://{self.folder}/edits"}
            for i in range(2):
                hdfs |= {
                    f"dfs.namenode.rpc-address.lake.nn{i}": f"127.0.0.1:{self.rpc[i]}",
                    f"dfs.namenode.http-address.lake.nn{i}": f"127.0.0.1:{self.web[i]}",
                    f"dfs.namenode.name.dir.lake.nn{i}": self.folder / f"name{i}",
                }
            provider = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
            hdfs |= {"dfs.client.failover.proxy.provider.lake": provider, "dfs.ha.nn.not-become-active-in-safemode": "false"}
            write_settings(self.conf / "core-site.xml", **{"fs.defaultFS": "hdfs://lake"})
        write_settings(self.conf / "hdfs-site.xml", **hdfs)

    def _run(self, program, *arguments):
        process = Process(self, program, *arguments)
        said = process.process.communicate()[0]
        assert process.process.returncode == 0, said[-2000:]
        return said

    def _start(self, data_nodes):
        name_node = f"{SERVER}.namenode.NameNode"
        of = [("-D", f"dfs.ha.namenode.id=nn{i}") if self.is_pair else () for i in range(len(self.web))]
        self._run(name_node, *of[0], "-format", "-nonInteractive")
        if self.is_pair:
            shutil.copytree(self.folder / "name0", self.folder / "name1")
        for i in range(len(self.web)):
            self.name_nodes.append(Process(self, name_node, *of[i]))
        for node in self.name_nodes:
            node.line(r"(NameNode RPC up at)")
        if self.is_pair:
            self._run("org.apache.hadoop.hdfs.tools.DFSHAAdmin", "-transitionToActive", "nn1")
        active = self.name_nodes[-1]
        for i in range(data_nodes):
            self.start_data_node(i + 1)
        for _ in range(data_nodes):
            active.line("(Processing first storage report)")
        for node in self.name_nodes:
            node.drain()
        self.operate("MKDIRS", "/data")
        self.operate("SETPERMISSION", "/data", permission="777")

    def start_data_node(self, number):
        host = f"127.0.0.{number}"  # where it gives files; among themselves HDFS's programs meet at 127.0.0.1
        options = {f"dfs.datanode{kind}.address": "127.0.0.1:0" for kind in ("", ".ipc")}
        options |= {"dfs.datanode.http.address": f"{host}:0", "dfs.datanode.hostname": host}
        options["dfs.datanode.data.dir"] = self.folder / f"data{number}"
        arguments = [part for name, value in options.items() for part in ("-D", f"{name}={value}")]
        node = self.data_nodes[number] = Process(self, f"{SERVER}.datanode.DataNode", *arguments)
        node.line("(Successfully sent block report)")
        node.drain()

    def operate(self, operation, path, method="PUT", data=None, user=USER, **parameters):
        """By the protocol itself, following redirects with the body."""
        query = urllib.parse.urlencode({"op": operation, "user.name": user, **parameters})
        url = f"http://127.0.0.1:{self.web[-1]}/webhdfs/v1{urllib.parse.quote(path)}?{query}"
        try:
            answer = urllib.request.build_opener(NoRedirects).open(urllib.request.Request(url, method=method))
        except urllib.error.HTTPError as redirect:
            if redirect.code != 307:
                raise AssertionError(redirect.read().decode()) from redirect
            answer = urllib.request.urlopen(urllib.request.Request(redirect.headers["Location"], data, method=method))
        text = answer.read()
        return json.loads(text) if text.startswith(b"{") else text

    def put(self, path, data):
        self.operate("CREATE", path, data=data, overwrite="true")

    def put_set(self, name, path):
        for file, data in files_of(path):
            self.put(f"/data/{name}/{file}", data)
        return f"{self.url}/data/{name}"

    def names(self, path):
        statuses = self.operate("LISTSTATUS", path, method="GET")["FileStatuses"]["FileStatus"]
        return sorted(status["pathSuffix"] for status in statuses)

    @property
    def url(self):
        return f"webhdfs://127.0.0.1:{self.web[0]}"

    @property
    def address(self):
        return f"http://127.0.0.1:{self.web[-1]}"

    def close(self):
        for node in [*self.data_nodes.values(), *self.name_nodes]:
            node.close()


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None
