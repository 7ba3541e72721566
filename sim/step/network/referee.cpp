#include "sim/step/network/referee.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <utility>

extern char** environ;

namespace reckon {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHowToGet =
    "it is built where SimGrid 3.32 is installed (Debian package libsimgrid-dev); RECKON_REFEREE "
    "may name it";

[[noreturn]] void fail(std::string_view what, int error) {
  throw std::runtime_error(fmt::format("network referee: {}: {}", what, std::strerror(error)));
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe", errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// SIGPIPE would end us when the child dies before it has read everything; blocked, the write fails
/// instead.
class BlockedSigpipe {
 public:
  BlockedSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~BlockedSigpipe() {
    const timespec no_wait{0, 0};
    if (raised_) sigtimedwait(&pipe_, nullptr, &no_wait);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  void raised() { raised_ = true; }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t pipe_, before_;
  bool raised_ = false;
};

/// Starts `program` with our ends of two pipes as its standard input and output.
pid_t spawn(const fs::path& program, const Pipe& in, const Pipe& out, const sigset_t& mask) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &mask);
  std::string name = program.string();
  char* arguments[] = {name.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, name.c_str(), &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) fail(fmt::format("cannot run {}", name), error);
  return child;
}

/// Writes `question` and reads the answer at the same time, so that neither side blocks on a full
/// pipe.
std::string converse(Descriptor to, Descriptor from, std::string_view question,
                     BlockedSigpipe& sigpipe) {
  fcntl(to.get(), F_SETFL, O_NONBLOCK);
  std::string answer;
  char buffer[1 << 16];
  while (from.open()) {
    pollfd waits[] = {{from.get(), POLLIN, 0},
                      {to.get(), POLLOUT, 0}};  // a closed `to` is -1: poll ignores it
    if (poll(waits, 2, -1) < 0 && errno != EINTR) fail("poll", errno);
    if (waits[1].revents != 0) {
      const ssize_t n = write(to.get(), question.data(), question.size());
      if (n >= 0) question.remove_prefix(std::size_t(n));
      if (n < 0 && errno == EPIPE) sigpipe.raised();
      if (question.empty() || (n < 0 && errno == EPIPE))
        to.close();  // the answer, or its lack, will say why
    }
    if (waits[0].revents != 0) {
      const ssize_t n = read(from.get(), buffer, sizeof buffer);
      if (n > 0) answer.append(buffer, std::size_t(n));
      if (n == 0 || (n < 0 && errno != EINTR)) from.close();
    }
  }
  return answer;
}

class RefereeNetwork final : public NetworkModel {
 public:
  explicit RefereeNetwork(fs::path program) : program_(std::move(program)) {}
  std::string_view name() const override { return "simgrid"; }

  std::vector<Seconds> run(const Network& network, const ActivityGraph& graph) const override {
    std::string question = write_question(network, graph);
    {
      const std::scoped_lock lock(mutex_);
      if (const auto known = answers_.find(question); known != answers_.end()) return known->second;
    }
    std::vector<Seconds> finish = ask(question);
    if (finish.size() != graph.activities().size())
      throw std::runtime_error("network referee: wrong number of answers");
    const std::scoped_lock lock(mutex_);
    return answers_.emplace(std::move(question), std::move(finish)).first->second;
  }

 private:
  std::vector<Seconds> ask(const std::string& question) const {
    BlockedSigpipe sigpipe;
    Pipe in = make_pipe(), out = make_pipe();
    const pid_t child = spawn(program_, in, out, sigpipe.before());
    in.read.close();
    out.write.close();
    const std::string answer =
        converse(std::move(in.write), std::move(out.read), question, sigpipe);
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
      if (errno != EINTR) fail("waitpid", errno);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      throw std::runtime_error(
          fmt::format("network referee: {} {} {}", program_.string(),
                      WIFEXITED(status) ? "ended with exit code" : "was ended by signal",
                      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
    return read_answer(answer);
  }

  fs::path program_;
  // A step asks the same of many layers, and each question starts a process.
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::vector<Seconds>> answers_;
};

}  // namespace

std::unique_ptr<NetworkModel> make_referee_network(fs::path program) {
  if (access(program.c_str(), X_OK) != 0)
    throw std::runtime_error(fmt::format("network referee: cannot run '{}': {}; {}",
                                         program.string(), std::strerror(errno), kHowToGet));
  return std::make_unique<RefereeNetwork>(std::move(program));
}

fs::path find_referee() {
  if (const char* named = std::getenv("RECKON_REFEREE"); named != nullptr && *named != '\0')
    return named;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = self.parent_path() / "reckon-referee";
  if (!error && access(beside.c_str(), X_OK) == 0) return beside;
  throw std::runtime_error(fmt::format("network referee: no '{}'; {}",
                                       error ? "reckon-referee" : beside.string(), kHowToGet));
}

}  // namespace reckon
