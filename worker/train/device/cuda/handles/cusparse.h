#pragma once
// The names of cuSPARSE that ATen's headers mention; see README.md.
typedef struct cusparseContext* cusparseHandle_t;
typedef enum { CUSPARSE_STATUS_SUCCESS = 0 } cusparseStatus_t;
