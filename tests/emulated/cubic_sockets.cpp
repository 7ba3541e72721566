// A library to be loaded before others: every TCP socket of the program, Gloo's too, uses cubic.
// bbr, the default of some machines, is paced by its own model of the link and takes a share that
// depends on the others' control.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int socket(int domain, int type, int protocol) {
  const int fd = int(syscall(SYS_socket, domain, type, protocol));
  constexpr char kControl[] = "cubic";
  if (fd >= 0 && (domain == AF_INET || domain == AF_INET6))
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kControl, sizeof kControl - 1);
  return fd;
}
