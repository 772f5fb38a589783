# Debian packages; setup.sh installs them. LibTorch and Arrow come from their wheels: Torch.cmake, Arrow.cmake.

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CURL REQUIRED)             # headers only: loaded when a webhook or an https:// address needs it
if(TUNE_ONLY_LOADER)
  return()
endif()
find_package(Boost 1.81 REQUIRED)          # headers only: Asio, Beast
find_package(SQLite3 REQUIRED)
find_package(simdjson REQUIRED)
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
if(TUNE_TESTS)
  find_package(GTest REQUIRED)
endif()
if(TUNE_BENCH)
  find_package(benchmark REQUIRED)
endif()
