#include "executor/launch/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <stdexcept>

#include "executor/train/records/progress.h"

namespace reckon {
namespace {

constexpr int kProgressDescriptor = 3;  // of the child; what it inherits follows
/// Our own descriptors are moved up here, so that none is overwritten while the child's are set.
constexpr int kOutOfTheWay = 64;

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(error)));
}

struct Pipe {
  FileHandle read, write;
};
Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot make a pipe", errno);
  Pipe pipe{FileHandle(ends[0]), FileHandle(ends[1])};
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return pipe;
}

/// posix_spawn's two structures, given back at the end.
class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

FileHandle out_of_the_way(int descriptor) {
  FileHandle copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, kOutOfTheWay));
  if (!copy.open()) fail("cannot copy a descriptor", errno);
  return copy;
}

/// NAME=VALUE of our environment with the child's over it.
std::vector<std::string> environment_of(const ProcessSpec& spec) {
  std::map<std::string, std::string, std::less<>> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      all.insert_or_assign(std::string(text.substr(0, equals)),
                           std::string(text.substr(equals + 1)));
  }
  all.insert_or_assign(ProgressPipe::kVariable, std::to_string(kProgressDescriptor));
  for (std::size_t k = 0; k < spec.inherited.size(); ++k)
    all.insert_or_assign(spec.inherited[k].first, std::to_string(kProgressDescriptor + 1 + int(k)));
  for (const auto& [name, value] : spec.environment) all.insert_or_assign(name, value);
  std::vector<std::string> texts;
  for (const auto& [name, value] : all) texts.push_back(name + '=' + value);
  return texts;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// A file in memory that holds `text`, read from its begin.
FileHandle in_memory(const std::string& text) {
  FileHandle file(::memfd_create("input", MFD_CLOEXEC));
  if (!file.open()) fail("cannot make a file in memory", errno);
  write_all(file.get(), std::as_bytes(std::span(text)), "a file in memory");
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

struct Streams {
  int input = -1;  // -1: /dev/null
  int output = -1, errors = -1, progress = -1;
};
void set_up(SpawnSettings& settings, const Streams& streams,
            const std::vector<FileHandle>& inherited) {
  auto* actions = &settings.actions;
  if (streams.input >= 0)
    ::posix_spawn_file_actions_adddup2(actions, streams.input, STDIN_FILENO);
  else
    ::posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(actions, streams.output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(actions, streams.errors, STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(actions, streams.progress, kProgressDescriptor);
  for (std::size_t k = 0; k < inherited.size(); ++k)
    ::posix_spawn_file_actions_adddup2(actions, inherited[k].get(),
                                       kProgressDescriptor + 1 + int(k));
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&settings.attributes, &none);
  ::posix_spawnattr_setsigdefault(&settings.attributes, &all);
  ::posix_spawnattr_setpgroup(&settings.attributes, 0);
  ::posix_spawnattr_setflags(
      &settings.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/// Of the copy of us that waits for our end. System calls only: other threads may have held locks.
[[noreturn]] void kill_group_behind_us(pid_t group, pid_t us, int our_handle) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "group-watch");
  ::dup2(our_handle, STDIN_FILENO);
  ::syscall(SYS_close_range, STDIN_FILENO + 1, ~0U, 0);
  constexpr int kLook = 1000;  // milliseconds, where there are no handles of processes
  while (::getppid() == us) {
    pollfd ended{our_handle >= 0 ? STDIN_FILENO : -1, POLLIN, 0};
    ::poll(&ended, 1, kLook);
  }
  ::kill(-group, SIGKILL);
  ::_exit(0);
}

/// Not PR_SET_PDEATHSIG of the program: what that has started would live on.
pid_t start_watcher(pid_t group) {
  const pid_t us = ::getpid();
  const FileHandle our_handle(int(::syscall(SYS_pidfd_open, us, 0)));
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of ours is to run in it
  const pid_t watcher = ::fork();
  if (watcher == 0) kill_group_behind_us(group, us, our_handle.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return watcher;
}

}  // namespace

std::string to_text(const ProcessEnd& end) {
  if (end.signal == 0) return fmt::format("ended with code {}", end.code);
  return fmt::format("was killed by signal {} ({})", end.signal, ::strsignal(end.signal));
}

ChildProcess::ChildProcess(const ProcessSpec& spec) {
  Pipe output = make_pipe(), progress = make_pipe();
  output.write = out_of_the_way(output.write.get());
  progress.write = out_of_the_way(progress.write.get());
  Pipe errors;
  if (spec.errors_apart) {
    errors = make_pipe();
    errors.write = out_of_the_way(errors.write.get());
  }
  FileHandle input;
  if (spec.input) input = out_of_the_way(in_memory(*spec.input).get());
  std::vector<FileHandle> inherited;
  for (const auto& [name, descriptor] : spec.inherited)
    inherited.push_back(out_of_the_way(descriptor));
  SpawnSettings settings;
  set_up(settings,
         {input.get(), output.write.get(),
          spec.errors_apart ? errors.write.get() : output.write.get(), progress.write.get()},
         inherited);
  std::vector<std::string> words = spec.command, environment = environment_of(spec);
  const std::vector<char*> arguments = pointers_to(words), variables = pointers_to(environment);
  const int error = ::posix_spawnp(&id_, arguments.front(), &settings.actions, &settings.attributes,
                                   arguments.data(), variables.data());
  if (error != 0) fail(fmt::format("cannot start {} ({})", spec.name, spec.command.front()), error);
  handle_ = FileHandle(int(::syscall(SYS_pidfd_open, id_, 0)));
  output_ = std::move(output.read);
  errors_ = std::move(errors.read);
  progress_ = std::move(progress.read);
  if (spec.outlives_us) watcher_ = start_watcher(id_);
}

ChildProcess::~ChildProcess() {
  if (end_) return;
  signal(SIGKILL);
  end_watcher();
  while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<ProcessEnd> ChildProcess::poll_end() {
  if (end_) return end_;
  siginfo_t info{};
  if (::waitid(P_PID, id_t(id_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != id_)
    return std::nullopt;
  // Its own children go with it; until it is reaped its number is nobody else's.
  ::kill(-id_, SIGKILL);
  end_watcher();
  int status = 0;
  if (::waitpid(id_, &status, 0) != id_) return std::nullopt;
  end_ = WIFSIGNALED(status) ? ProcessEnd{0, WTERMSIG(status)} : ProcessEnd{WEXITSTATUS(status), 0};
  return end_;
}

void ChildProcess::end_watcher() {
  if (watcher_ < 0) return;
  ::kill(watcher_, SIGKILL);
  while (::waitpid(watcher_, nullptr, 0) < 0 && errno == EINTR) {
  }
  watcher_ = -1;
}

void ChildProcess::signal(int number) {
  if (!end_) ::kill(-id_, number);
}

bool ChildProcess::has_remains() const { return end_ && ::kill(-id_, 0) == 0; }

char state_of_process(pid_t id) {
  std::ifstream file(fmt::format("/proc/{}/stat", id));
  std::string text;
  std::getline(file, text);
  const std::size_t behind = text.rfind(") ");  // the name before it may hold anything
  return behind == std::string::npos ? char{0} : text[behind + 2];
}

}  // namespace reckon
