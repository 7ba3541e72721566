#define RECKON_ISA baseline
#include "executor/train/products/matrix_eigen.h"
