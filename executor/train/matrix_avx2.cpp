#define RECKON_ISA avx2
#include "executor/train/matrix_eigen.h"
