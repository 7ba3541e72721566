#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace reckon::kubernetes {

/// What kubectl could not do, as far as it makes a difference to what is to be done next.
enum class KubectlFailure {
  connection,  // the server is away, slow or starting: it may answer later
  login,       // the token is expired, or was never there: a person may log in again
  forbidden,   // by the cluster's rules, quotas among them
  missing,     // no such object
  conflict,    // somebody else changed it, or it is there already
  invalid,     // the cluster does not take it
  setup,       // no kubectl, no kubeconfig, no such context
  other
};

/// By kubectl's own words on standard error.
KubectlFailure failure_of(std::string_view message);
/// What to do about it; "": nothing that is not in kubectl's words.
std::string advice_on(KubectlFailure failure);
/// May the same command succeed later without anybody changing it?
inline bool passes(KubectlFailure f) {
  return f == KubectlFailure::connection || f == KubectlFailure::login;
}

/// A kubectl command that failed, in kubectl's own words with what to do.
class KubectlError : public std::runtime_error {
 public:
  KubectlError(KubectlFailure failure, const std::string& what)
      : std::runtime_error(what), failure_(failure) {}
  KubectlFailure failure() const { return failure_; }

 private:
  KubectlFailure failure_;
};

}  // namespace reckon::kubernetes
