#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "executor/comm/rendezvous/job_secret.h"

namespace {
using namespace reckon;
namespace fs = std::filesystem;

struct Directory {
  Directory() {
    std::string name = (fs::temp_directory_path() / "reckon-secret-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Directory() { fs::remove_all(path); }
  fs::path path;
};

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}
unsigned mode_of(const fs::path& file) {
  struct stat about {};
  REQUIRE(::lstat(file.c_str(), &about) == 0);
  return about.st_mode;
}
std::string message_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const SecretError& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("a secret's file is its owner's alone, whatever the umask, and goes with the run") {
  const Directory d;
  const fs::path file = d.path / "job.secret";
  for (const mode_t mask : {mode_t{0}, mode_t{0777}}) {
    const mode_t before = ::umask(mask);
    {
      const JobSecretFile secret(file);
      ::umask(before);
      CHECK((mode_of(file) & 07777) == 0600);
      CHECK(S_ISREG(mode_of(file)));
      CHECK(JobSecret::read(file).text() + "\n" == text_of(file));
    }
    CHECK_FALSE(fs::exists(file));
  }
}

TEST_CASE("a secret is new each time, and what stood at its place is replaced, not written to") {
  const Directory d;
  const fs::path file = d.path / "job.secret", trap = d.path / "trap";
  std::ofstream(trap) << "somebody's";
  fs::create_symlink(trap, file);
  std::string first;
  {
    const JobSecretFile secret(file);
    first = text_of(file);
    CHECK(S_ISREG(mode_of(file)));
    CHECK(text_of(trap) == "somebody's");
  }
  std::ofstream(file) << "left by a launcher that was killed";
  fs::permissions(file, fs::perms::all);
  const JobSecretFile secret(file);
  CHECK(text_of(file) != first);
  CHECK((mode_of(file) & 07777) == 0600);
  CHECK(first.size() == 65);
}

TEST_CASE("a secret that others may read or change is refused") {
  const Directory d;
  const fs::path file = d.path / "job.secret";
  std::ofstream(file) << JobSecret::random().text();
  for (const int mode : {0604, 0602, 0644, 0620}) {
    ::chmod(file.c_str(), mode_t(mode));
    CHECK_THAT(message_of([&] { JobSecret::read(file); }), Catch::Contains("is open to others"));
  }
  for (const int mode : {0600, 0400, 0440}) {  // 0440: a Secret of Kubernetes with an fsGroup
    ::chmod(file.c_str(), mode_t(mode));
    CHECK(message_of([&] { JobSecret::read(file); }).empty());
  }
}

TEST_CASE("a file that holds no secret is said to, without what it holds") {
  const Directory d;
  const fs::path file = d.path / "job.secret";
  const std::string good = JobSecret::random().text();
  for (const std::string& text : {std::string(), good.substr(1), good + "0", "x" + good.substr(1),
                                  good + "\n" + good, std::string(100'000, 'a')}) {
    std::ofstream(file, std::ios::trunc) << text;
    ::chmod(file.c_str(), 0600);
    const std::string message = message_of([&] { JobSecret::read(file); });
    CHECK_THAT(message,
               Catch::Contains("64 hexadecimal digits") && Catch::Contains("openssl rand -hex 32"));
    CHECK_THAT(message, !Catch::Contains(good.substr(1, 20)));
  }
  CHECK(JobSecret::parse("  " + good + "\r\n").text() == good);
  CHECK_THAT(message_of([&] { JobSecret::read(d.path / "none"); }),
             Catch::Contains("none: No such file"));
}

TEST_CASE("the option names the secret's file, else RECKON_SECRET_FILE, else it is said how") {
  const Directory d;
  const JobSecretFile first(d.path / "first"), second(d.path / "second");
  ::unsetenv(JobSecret::kVariable);
  CHECK_THAT(message_of([] { JobSecret::of_process({}); }),
             Catch::Contains("a job of several processes needs a secret") &&
                 Catch::Contains("umask 077") && Catch::Contains("--secret-file"));
  ::setenv(JobSecret::kVariable, first.path().c_str(), 1);
  CHECK(JobSecret::of_process({}).text() + "\n" == text_of(first.path()));
  CHECK(JobSecret::of_process(second.path()).text() + "\n" == text_of(second.path()));
  ::unsetenv(JobSecret::kVariable);
}
