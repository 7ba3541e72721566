// A static program's dlopen() works only beside the very glibc that it was linked with, and ends
// the program beside others. So what looks for a driver's libraries finds none.
extern "C" {
void* dlopen(const char* /*file*/, int /*mode*/) noexcept { return nullptr; }
char* dlerror() noexcept {
  static char text[] = "this program is linked statically and loads no libraries";
  return text;
}
}
