// Debian has no static Gloo: this definition comes first, so the linker leaves that of Gloo out.
#undef RECKON_WITH_GLOO
#include "executor/comm/gloo/gloo_communicator.cpp"
