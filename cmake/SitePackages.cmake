# TUNE_SITE_PACKAGES: where setup.sh unpacked the LibTorch and Arrow wheels.
file(GLOB TUNE_SITE_PACKAGES_FOUND LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages)
list(POP_FRONT TUNE_SITE_PACKAGES_FOUND TUNE_SITE_PACKAGES_DEFAULT)
set(TUNE_SITE_PACKAGES "${TUNE_SITE_PACKAGES_DEFAULT}" CACHE PATH "site-packages that hold the torch and pyarrow wheels")
