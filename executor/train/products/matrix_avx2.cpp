#define RECKON_ISA avx2
#include "executor/train/products/matrix_eigen.h"
