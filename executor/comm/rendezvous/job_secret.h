#pragma once
#include <filesystem>
#include <stdexcept>
#include <string>

#include "executor/comm/crypto.h"

namespace reckon {

/// A secret cannot be had: what is wrong with its file, and what to do. Never what the file holds.
class SecretError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the processes of one job know and nobody else: 32 random bytes. Whoever knows them is a
/// process of the job.
class JobSecret {
 public:
  static JobSecret random();
  /// 64 hexadecimal digits, blanks around them are allowed. Throws SecretError.
  static JobSecret parse(const std::string& text);
  /// Throws SecretError; also where all users of the machine may read the file.
  static JobSecret read(const std::filesystem::path& file);
  /// Of this process: the file that `option` (--secret-file) names, else RECKON_SECRET_FILE. Throws
  /// SecretError; without either it says how a secret is made.
  static JobSecret of_process(const std::filesystem::path& option);

  const Key& key() const { return key_; }
  std::string text() const;
  static constexpr const char* kVariable = "RECKON_SECRET_FILE";

 private:
  JobSecret() = default;
  Key key_{};
};

/// A new secret in a file that its owner alone can read, there as long as this object is. What
/// stood at its place is replaced.
class JobSecretFile {
 public:
  /// Throws SecretError.
  explicit JobSecretFile(std::filesystem::path path);
  ~JobSecretFile();
  JobSecretFile(const JobSecretFile&) = delete;
  JobSecretFile& operator=(const JobSecretFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace reckon
