# torch::cpu from the torch wheel or from Torch_ROOT. find_package(Torch) is not used: without a CUDA toolkit the
# wheel's own configuration stops with an error, although nothing of CUDA is needed here.
include(SitePackages)
set(Torch_ROOT "${TUNE_SITE_PACKAGES}/torch" CACHE PATH "LibTorch: the folder that holds include/ and lib/")

set(TUNE_HAVE_TORCH OFF)
if(NOT TUNE_WITH_TORCH STREQUAL "OFF")
  if(EXISTS "${Torch_ROOT}/lib/libtorch_cpu.so" AND EXISTS "${Torch_ROOT}/include/torch/csrc/api/include/torch/version.h")
    add_library(torch_cpu_interface INTERFACE)
    add_library(torch::cpu ALIAS torch_cpu_interface)
    target_include_directories(torch_cpu_interface SYSTEM INTERFACE
      ${Torch_ROOT}/include ${Torch_ROOT}/include/torch/csrc/api/include)
    target_compile_definitions(torch_cpu_interface INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
    target_link_libraries(torch_cpu_interface INTERFACE
      ${Torch_ROOT}/lib/libtorch_cpu.so ${Torch_ROOT}/lib/libc10.so)
    target_link_options(torch_cpu_interface INTERFACE -Wl,-rpath,${Torch_ROOT}/lib)
    set(TUNE_HAVE_TORCH ON)
  elseif(TUNE_WITH_TORCH STREQUAL "ON")
    message(FATAL_ERROR "LibTorch is not in '${Torch_ROOT}'. Run ./setup.sh, or give -DTorch_ROOT=DIR.")
  endif()
endif()
message(STATUS "LibTorch: ${TUNE_HAVE_TORCH} (${Torch_ROOT})")
