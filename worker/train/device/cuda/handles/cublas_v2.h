#pragma once
// The names of cuBLAS that ATen's headers mention; see README.md.
typedef struct cublasContext* cublasHandle_t;
typedef enum { CUBLAS_STATUS_SUCCESS = 0 } cublasStatus_t;
