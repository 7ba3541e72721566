#define RECKON_ISA baseline
#include "executor/train/matrix_eigen.h"
