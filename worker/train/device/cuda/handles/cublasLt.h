#pragma once
// The names of cuBLASLt that ATen's headers mention; see README.md.
#include "cublas_v2.h"
typedef struct cublasLtContext* cublasLtHandle_t;
