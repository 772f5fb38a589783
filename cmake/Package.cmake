# Installing and packaging the programs. `cmake --install` and the target `package` put the same tree under a prefix:
#
#   bin/tune bin/tune-data bin/tune-trainer      lib/tune/*.so  the libraries they need, but libc's
#   share/man/man1  share/bash-completion  share/zsh  share/fish  lib/systemd/system/tune.service  share/doc/tune
#
# The wheel also holds the Python modules tune_client and tuneloader.
#
# Programs look for libraries in $ORIGIN/../lib/tune, so the tree works wherever it stands. LibTorch and Arrow are not
# in it: they are those of the torch and pyarrow wheels of the Python that stands under the same prefix, as in a
# virtual environment. Therefore only the wheel holds tune-data and tune-trainer; the .deb and the .tar.gz hold tune.
include(GNUInstallDirs)
set(CMAKE_INSTALL_MESSAGE NEVER)

set(TUNE_PACKAGED_PROGRAMS tune)
set(TUNE_RPATH_TUNE "$ORIGIN/../lib/tune")
set(TUNE_RPATH_WHEELS "${TUNE_RPATH_TUNE}")
foreach(minor 10 11 12 13 14)
  foreach(folder torch/lib pyarrow)
    list(APPEND TUNE_RPATH_WHEELS "$ORIGIN/../lib/python3.${minor}/site-packages/${folder}")
  endforeach()
endforeach()
list(APPEND TUNE_PACKAGED_PROGRAMS tune-data)
if(TARGET tune-trainer)
  list(APPEND TUNE_PACKAGED_PROGRAMS tune-trainer)
endif()
set_target_properties(tune PROPERTIES INSTALL_RPATH "${TUNE_RPATH_TUNE}")
foreach(program ${TUNE_PACKAGED_PROGRAMS})
  if(NOT program STREQUAL tune)
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "${TUNE_RPATH_WHEELS}")
  endif()
  # DT_RPATH: unlike DT_RUNPATH it also holds for what the libraries themselves need.
  target_link_options(${program} PRIVATE LINKER:--disable-new-dtags)
endforeach()

# What `tune` says of itself.
set(TUNE_DOCS ${CMAKE_BINARY_DIR}/package)
file(MAKE_DIRECTORY ${TUNE_DOCS})
add_custom_command(
  OUTPUT ${TUNE_DOCS}/tune.1 ${TUNE_DOCS}/tune.bash ${TUNE_DOCS}/_tune ${TUNE_DOCS}/tune.fish
  COMMAND tune man > ${TUNE_DOCS}/tune.1
  COMMAND tune completion bash > ${TUNE_DOCS}/tune.bash
  COMMAND tune completion zsh > ${TUNE_DOCS}/_tune
  COMMAND tune completion fish > ${TUNE_DOCS}/tune.fish
  DEPENDS tune VERBATIM)
add_custom_target(tune_docs DEPENDS ${TUNE_DOCS}/tune.1)

# Component `programs`: what the .deb and the .tar.gz hold. Component `wheel`: what the wheel holds beside it.
install(TARGETS tune RUNTIME_DEPENDENCY_SET tune_libraries DESTINATION bin COMPONENT programs)
install(RUNTIME_DEPENDENCY_SET tune_libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^libc\\.so" "^libm\\.so" "^libpthread" "^libdl" "^librt"
  DESTINATION lib/tune COMPONENT programs)
set(data_programs ${TUNE_PACKAGED_PROGRAMS})
list(REMOVE_ITEM data_programs tune)
install(TARGETS ${data_programs} RUNTIME_DEPENDENCY_SET tune_data_libraries DESTINATION bin COMPONENT wheel)
if(TARGET tuneloader)
  # Beside its Python files in site-packages; the environment's lib/tune is three folders up.
  set_target_properties(tuneloader PROPERTIES INSTALL_RPATH "$ORIGIN/../../../tune")
  target_link_options(tuneloader PRIVATE LINKER:--disable-new-dtags)
  install(TARGETS tuneloader RUNTIME_DEPENDENCY_SET tune_data_libraries DESTINATION tuneloader COMPONENT wheel)
endif()
# What URLs of data sets, and tables, are read with: found from the programs in ../lib/tune. libcurl is the system's, Arrow the
# wheel's.
set(data_sources tune_http_source)
if(TARGET tune_object_store)
  list(APPEND data_sources tune_object_store tune_tables)
endif()
set(source_rpath "$ORIGIN")
foreach(minor 10 11 12 13 14)
  string(APPEND source_rpath ":$ORIGIN/../python3.${minor}/site-packages/pyarrow")
endforeach()
set_target_properties(${data_sources} PROPERTIES INSTALL_RPATH "${source_rpath}")
install(TARGETS ${data_sources} LIBRARY DESTINATION lib/tune COMPONENT wheel)
# What a GPU needs. LibTorch's CUDA part and what that needs are the torch wheel's; nothing of them is installed here.
if(TARGET tune_train_cuda)
  set(torch_rpath "")
  foreach(minor 10 11 12 13 14)
    list(APPEND torch_rpath "$ORIGIN/../python3.${minor}/site-packages/torch/lib")
  endforeach()
  set_target_properties(tune_train_cuda PROPERTIES INSTALL_RPATH "${torch_rpath}")
  install(TARGETS tune_train_cuda LIBRARY DESTINATION lib/tune COMPONENT wheel)
endif()
install(RUNTIME_DEPENDENCY_SET tune_data_libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^libc\\.so" "^libm\\.so" "^libpthread" "^libdl" "^librt"
    "^libtorch" "^libc10" "^libarrow" "^libparquet" "^libgomp" "^libcu" "^libnv" "^libshm"
  DESTINATION lib/tune COMPONENT wheel)
install(FILES ${TUNE_DOCS}/tune.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
install(FILES ${TUNE_DOCS}/tune.bash DESTINATION share/bash-completion/completions RENAME tune COMPONENT programs)
install(FILES ${TUNE_DOCS}/_tune DESTINATION share/zsh/vendor-completions COMPONENT programs)
install(FILES ${TUNE_DOCS}/tune.fish DESTINATION share/fish/vendor_completions.d COMPONENT programs)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/package/tune.service DESTINATION lib/systemd/system COMPONENT programs)
install(FILES ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md DESTINATION share/doc/tune RENAME copyright COMPONENT programs)
# The long texts that it refers to.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/cmake/package/licences/ DESTINATION share/doc/tune COMPONENT programs)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/clients/python/ DESTINATION share/tune/python COMPONENT programs
  PATTERN "__pycache__" EXCLUDE)

# cpack by hand and not include(CPack): its target `package` would build everything first, tests and benchmarks too.
# (A file CPackConfig.cmake in the build folder would have CMake reserve the target's name.)
configure_file(${PROJECT_SOURCE_DIR}/cmake/package/CPackConfig.cmake.in ${CMAKE_BINARY_DIR}/package/config.cmake @ONLY)
find_package(Python3 COMPONENTS Interpreter QUIET)
set(TUNE_PACKAGES ${CMAKE_BINARY_DIR}/packages)
set(wheel_command)
if(Python3_Interpreter_FOUND)
  set(wheel_command
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${CMAKE_BINARY_DIR}/wheel-root
    COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${CMAKE_BINARY_DIR}/wheel-root --component programs --strip
    COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${CMAKE_BINARY_DIR}/wheel-root --component wheel --strip
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/package/make_wheel.py
      --tree ${CMAKE_BINARY_DIR}/wheel-root --version ${PROJECT_VERSION} --python ${PROJECT_SOURCE_DIR}/clients/python
      --loader ${PROJECT_SOURCE_DIR}/loader/python
      --requirements ${PROJECT_SOURCE_DIR}/requirements.txt --output ${TUNE_PACKAGES})
endif()
add_custom_target(package
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${TUNE_PACKAGES}
  COMMAND ${CMAKE_CPACK_COMMAND} --config ${CMAKE_BINARY_DIR}/package/config.cmake
  ${wheel_command}
  COMMAND ${CMAKE_COMMAND} -E echo "Packages in ${TUNE_PACKAGES}"
  DEPENDS ${TUNE_PACKAGED_PROGRAMS} ${data_sources} tune_docs
  COMMENT "Packing the .deb, the .tar.gz and the wheel" VERBATIM)
if(TARGET tuneloader)
  add_dependencies(package tuneloader)
endif()
