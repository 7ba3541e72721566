#include "executor/kubernetes/kubectl.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "sim/base/unit_text.h"

namespace reckon::kubernetes {
namespace {

using Clock = std::chrono::steady_clock;

/// What is there of a pipe; false: the other end is closed.
bool take(int descriptor, std::string& text) {
  std::array<char, 65536> part{};
  for (;;) {
    const ssize_t n = ::read(descriptor, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    text.append(part.data(), std::size_t(n));
  }
}

/// kubectl's words without the noise around them.
std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

/// The part of a command that says what it is about, for messages: without manifests' options, and
/// without the query of a path of the API.
std::string title_of(const Words& words) {
  std::string title = "kubectl";
  for (std::size_t k = 0; k < words.size() && k < 4; ++k)
    title += ' ' + (words[k].starts_with('/') ? words[k].substr(0, words[k].find('?')) : words[k]);
  return title;
}

KubectlError error_of(const std::string& title, const std::string& message) {
  const KubectlFailure failure = failure_of(message);
  const std::string advice = advice_on(failure);
  return {failure, fmt::format("{}: {}{}{}", title, message, advice.empty() ? "" : "; ", advice)};
}

/// Does a command change what is in the cluster?
bool changes_cluster(const Words& words) {
  constexpr std::array<std::string_view, 5> kReading{"get", "logs", "auth", "version", "config"};
  return !words.empty() && std::ranges::count(kReading, words.front()) == 0;
}

/// The failure of a command that a guard does not let go on, as failure_of() knows it.
void refuse(KubectlResult& result) {
  result.code = -1;
  result.err += "the launcher's lease has run out, and it changes nothing until it is renewed";
}

}  // namespace

Kubectl Kubectl::guarded(std::function<bool()> may) const {
  Kubectl guarded = *this;
  guarded.may_ = std::move(may);
  return guarded;
}

Kubectl Kubectl::of_user(std::string context, std::string name_space) {
  const char* named = std::getenv("RECKON_KUBECTL");
  return Kubectl({.program = named != nullptr && *named != '\0' ? named : "kubectl",
                  .context = std::move(context),
                  .name_space = std::move(name_space)});
}

Words Kubectl::command(const Words& words, bool in_namespace) const {
  Words all{target_.program};
  if (!target_.context.empty()) {
    all.emplace_back("--context");
    all.push_back(target_.context);
  }
  if (in_namespace && !target_.name_space.empty()) {
    all.emplace_back("--namespace");
    all.push_back(target_.name_space);
  }
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

KubectlResult Kubectl::attempt_command(const Words& command, const std::string& input,
                                       Seconds limit, bool acts) const {
  const bool guarded = acts && may_;
  KubectlResult result;
  if (guarded && !may_()) {
    refuse(result);
    return result;
  }
  ProcessSpec spec{.name = "kubectl", .command = command, .environment = {}, .inherited = {}};
  spec.errors_apart = true;
  if (!input.empty()) spec.input = input;
  std::unique_ptr<ChildProcess> process;
  try {
    process = std::make_unique<ChildProcess>(spec);
  } catch (const std::runtime_error& error) {
    throw KubectlError(
        KubectlFailure::setup,
        fmt::format("{}; install kubectl, or name it in RECKON_KUBECTL", error.what()));
  }
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  bool out = true, err = true;
  while (out || err) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) {
      result.code = -1;
      result.err += fmt::format("no answer within {}: i/o timeout", format_duration(limit));
      return result;  // the process is killed
    }
    if (guarded && !may_()) {
      refuse(result);
      return result;  // likewise
    }
    std::array<pollfd, 2> polled{pollfd{out ? process->output() : -1, POLLIN, 0},
                                 pollfd{err ? process->errors() : -1, POLLIN, 0}};
    const std::int64_t longest = guarded ? 100 : 1000;  // milliseconds
    ::poll(polled.data(), polled.size(), int(std::min<std::int64_t>(left, longest)));
    if (out && polled[0].revents != 0) out = take(process->output(), result.out);
    if (err && polled[1].revents != 0) err = take(process->errors(), result.err);
  }
  std::optional<ProcessEnd> end;
  while (!(end = process->poll_end()) && Clock::now() < until) {
    pollfd ended{process->handle(), POLLIN, 0};
    ::poll(&ended, 1, 100);
  }
  result.code = !end ? -1 : end->signal != 0 ? 128 + end->signal : end->code;
  return result;
}

KubectlResult Kubectl::attempt(const Words& words, const std::string& input, Seconds limit) const {
  return attempt_command(command(words, true), input, limit, changes_cluster(words));
}

std::string Kubectl::checked(KubectlResult result, const Words& words) const {
  if (result.good()) return std::move(result.out);
  const std::string message = trimmed(result.err);
  throw error_of(title_of(words),
                 message.empty() ? fmt::format("ended with code {}", result.code) : message);
}

std::string Kubectl::run(const Words& words, const std::string& input, Seconds limit) const {
  return checked(attempt(words, input, limit), words);
}

Json Kubectl::json(const Words& words, Seconds limit) const {
  Words all = words;
  all.emplace_back("--output=json");
  const std::string text = run(all, {}, limit);
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded())
    throw KubectlError(KubectlFailure::other,
                       fmt::format("{}: what it printed is no JSON: {}", title_of(words),
                                   trimmed(text.substr(0, 200))));
  return value;
}

Json Kubectl::raw(const std::string& path, Seconds limit) const {
  const Words words{"get", "--raw", path};
  Json value = Json::parse(checked(attempt_command(command(words, false), {}, limit, false), words),
                           nullptr, false);
  if (value.is_discarded())
    throw KubectlError(KubectlFailure::connection,
                       fmt::format("kubectl get --raw {}: half an answer: unexpected EOF", path));
  return value;
}

std::unique_ptr<ChildProcess> Kubectl::start(const Words& words) const {
  ProcessSpec spec{
      .name = "kubectl", .command = command(words, true), .environment = {}, .inherited = {}};
  spec.errors_apart = true;
  return std::make_unique<ChildProcess>(spec);
}

std::unique_ptr<ChildProcess> Kubectl::start_raw(const std::string& path) const {
  ProcessSpec spec{.name = "kubectl",
                   .command = command({"get", "--raw", path}, false),
                   .environment = {},
                   .inherited = {}};
  spec.errors_apart = true;
  return std::make_unique<ChildProcess>(spec);
}

}  // namespace reckon::kubernetes
