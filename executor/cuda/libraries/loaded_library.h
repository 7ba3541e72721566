#pragma once
#include <string>

namespace reckon::cuda {

/// A shared library that is loaded when it is asked for and stays; what is wrong with it is kept,
/// not thrown. dlopen(3)'s own search, then `found_at`, where the build found it.
class LoadedLibrary {
 public:
  LoadedLibrary(std::string name, const char* found_at);
  /// Sets `function`, of its C declaration's type, to the one called `name`.
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(address_of(name));
  }
  /// "" where the library was found with all that was looked for.
  const std::string& problem() const { return problem_; }
  const std::string& name() const { return name_; }
  /// Its file, as the loader found it; "": there is none.
  std::string path() const;

 private:
  void* address_of(const char* name);

  std::string name_, problem_;
  void* library_ = nullptr;
};

}  // namespace reckon::cuda
