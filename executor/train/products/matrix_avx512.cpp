#define RECKON_ISA avx512
#include "executor/train/products/matrix_eigen.h"
