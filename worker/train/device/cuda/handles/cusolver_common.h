#pragma once
// The names of cuSOLVER that ATen's headers mention; see README.md.
typedef enum { CUSOLVER_STATUS_SUCCESS = 0, CUSOLVER_STATUS_INTERNAL_ERROR = 7 } cusolverStatus_t;
