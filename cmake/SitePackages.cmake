# TUNE_SITE_PACKAGES: where setup.sh unpacked the LibTorch and Arrow wheels.
file(GLOB TUNE_SITE_PACKAGES_FOUND LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages)
list(POP_FRONT TUNE_SITE_PACKAGES_FOUND TUNE_SITE_PACKAGES_DEFAULT)
# `pip install ./loader/python` builds with the Arrow that pip put beside the build's own Python.
if(TUNE_ONLY_LOADER AND DEFINED Python_EXECUTABLE)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import os, pyarrow; print(os.path.dirname(os.path.dirname(pyarrow.__file__)))"
    OUTPUT_VARIABLE TUNE_SITE_PACKAGES_OF_PYTHON OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(TUNE_SITE_PACKAGES_OF_PYTHON)
    set(TUNE_SITE_PACKAGES_DEFAULT ${TUNE_SITE_PACKAGES_OF_PYTHON})
  endif()
endif()
set(TUNE_SITE_PACKAGES "${TUNE_SITE_PACKAGES_DEFAULT}" CACHE PATH "site-packages that hold the torch and pyarrow wheels")
