#define RECKON_ISA avx512
#include "executor/train/matrix_eigen.h"
