// A driver with two GPUs, as far as `reckon` asks: libnvidia-ml.so.1 of the tests. Entries that are
// not here are those of an older driver.
#include <cstdio>

extern "C" {
struct Memory {
  unsigned long long total, free, used;
};
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* to, unsigned size) {
  std::snprintf(to, size, "570.86.15");
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static char devices[2];
  *device = &devices[index];
  return index < 2 ? 0 : 2;  // NVML_ERROR_INVALID_ARGUMENT
}
int nvmlDeviceGetName(void*, char* to, unsigned size) {
  std::snprintf(to, size, "NVIDIA Test 80GB");
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {80ULL << 30, 80ULL << 30, 0};
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int which, unsigned* megahertz) {
  *megahertz = which == 1 ? 345 : 0;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, int which, unsigned* megahertz) {
  *megahertz = which == 1 ? 1980 : 0;
  return 0;
}
int nvmlDeviceGetNvLinkState(void*, unsigned link, unsigned* active) {
  *active = link < 17 ? 1 : 0;
  return link < 18 ? 0 : 2;
}
int nvmlDeviceGetTemperature(void*, int, unsigned*) { return 3; }  // NVML_ERROR_NOT_SUPPORTED
}
