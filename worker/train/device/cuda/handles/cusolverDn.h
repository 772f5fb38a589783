#pragma once
// The names of cuSOLVER that ATen's headers mention; see README.md.
#include "cusolver_common.h"
typedef struct cusolverDnContext* cusolverDnHandle_t;
