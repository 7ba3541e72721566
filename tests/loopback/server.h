#pragma once
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "cli/run_reckon.h"
#include "executor/launch/process.h"

namespace reckon {

constexpr int kBatchMax = 8;  // of the server

/// `reckon-worker serve` while it lives.
class Server {
 public:
  explicit Server(const test::Workspace& w) : process_(spec(w)) {
    const std::string mark = "http://127.0.0.1:";
    std::size_t at = std::string::npos;
    while ((at = said_.find(mark)) == std::string::npos || said_.find(":predict") == at) read();
    port_ = std::uint16_t(std::strtoul(said_.c_str() + at + mark.size(), nullptr, 10));
  }
  ~Server() { process_.signal(SIGKILL); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  std::uint16_t port() const { return port_; }
  pid_t id() const { return process_.id(); }

 private:
  static ProcessSpec spec(const test::Workspace& w) {
    ProcessSpec spec;
    spec.name = "server";
    spec.command = {RECKON_BINARY_DIR "/bin/reckon-worker",
                    "serve",
                    w.path("model").string(),
                    "--name",
                    "m",
                    "--listen",
                    "0",
                    "--threads",
                    "1",
                    "--batch-max",
                    std::to_string(kBatchMax)};
    spec.reports = false;
    return spec;
  }
  void read() {
    pollfd output{process_.output(), POLLIN, 0};
    ::poll(&output, 1, -1);
    char part[4096];
    const ssize_t n = ::read(process_.output(), part, sizeof part);
    if (n == 0) throw std::runtime_error("the server ended: " + said_);
    if (n > 0) said_.append(part, std::size_t(n));
  }
  ChildProcess process_;
  std::string said_;
  std::uint16_t port_ = 0;
};

}  // namespace reckon
