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
    # libtorch_cpu.so holds Gloo; setup.sh unpacks the headers, which the wheel lacks. Never Debian's libgloo.so: it
    # would clash.
    find_path(TUNE_GLOO_INCLUDE gloo/context.h HINTS ${PROJECT_SOURCE_DIR}/.venv/include)
    if(NOT TUNE_GLOO_INCLUDE)
      message(FATAL_ERROR "The headers of Gloo are missing. Run ./setup.sh, or give -DTUNE_GLOO_INCLUDE=DIR "
        "(the folder that holds gloo/context.h).")
    endif()
    target_include_directories(torch_cpu_interface SYSTEM INTERFACE ${TUNE_GLOO_INCLUDE})
  elseif(TUNE_WITH_TORCH STREQUAL "ON")
    message(FATAL_ERROR "LibTorch is not in '${Torch_ROOT}'. Run ./setup.sh, or give -DTorch_ROOT=DIR.")
  endif()
endif()
message(STATUS "LibTorch: ${TUNE_HAVE_TORCH} (${Torch_ROOT})")

# torch::cuda for the GPU library, where LibTorch has its CUDA part and the headers are there: from a toolkit
# (CUDA_HOME), else from the wheels. The library is linked but never run on a machine without a GPU.
set(TUNE_HAVE_CUDA OFF)
if(TUNE_HAVE_TORCH AND EXISTS "${Torch_ROOT}/lib/libtorch_cuda.so")
  get_filename_component(nvidia_wheels "${Torch_ROOT}/../nvidia" ABSOLUTE)
  file(GLOB toolkit_wheels LIST_DIRECTORIES true ${nvidia_wheels}/cu[0-9]*)
  find_path(TUNE_CUDA_INCLUDE cuda_runtime_api.h HINTS ENV CUDA_HOME PATH_SUFFIXES include targets/x86_64-linux/include
    PATHS /usr/local/cuda ${toolkit_wheels} NO_DEFAULT_PATH)
  find_path(TUNE_NCCL_INCLUDE nccl.h HINTS ${nvidia_wheels}/nccl/include)
  if(TUNE_CUDA_INCLUDE AND TUNE_NCCL_INCLUDE AND EXISTS "${TUNE_CUDA_INCLUDE}/crt/host_config.h")
    add_library(torch_cuda_interface INTERFACE)
    add_library(torch::cuda ALIAS torch_cuda_interface)
    target_include_directories(torch_cuda_interface SYSTEM INTERFACE ${TUNE_CUDA_INCLUDE} ${TUNE_NCCL_INCLUDE})
    if(NOT EXISTS "${TUNE_CUDA_INCLUDE}/cublas_v2.h")
      target_include_directories(torch_cuda_interface SYSTEM INTERFACE
        ${PROJECT_SOURCE_DIR}/worker/train/device/cuda/handles)
    endif()
    target_compile_definitions(torch_cuda_interface INTERFACE USE_C10D_NCCL)
    target_link_libraries(torch_cuda_interface INTERFACE torch::cpu
      ${Torch_ROOT}/lib/libtorch_cuda.so ${Torch_ROOT}/lib/libc10_cuda.so)
    set(TUNE_HAVE_CUDA ON)
  endif()
endif()
message(STATUS "GPU library: ${TUNE_HAVE_CUDA} (headers: ${TUNE_CUDA_INCLUDE}, ${TUNE_NCCL_INCLUDE})")
