#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_reckon.h"

namespace reckon::test {

/// The folder of the kit; "": there is none.
std::string kit_folder();

/// A real Kubernetes on this machine, started by the scripts of a kit: the folder that
/// RECKON_KUBERNETES_KIT names, else ../shared/kubernetes beside the checkout. A test without one
/// is skipped, with the reason.
class Cluster {
 public:
  enum class Parts { control_plane, with_node };
  /// `options`: more words for the kit's `up`.
  explicit Cluster(Parts parts, const std::string& options = "");
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Of one test program: started by the first who asks.
  static Cluster& with_node();

  const std::string& kubeconfig() const { return kubeconfig_; }  // a file of JSON
  std::string environment() const { return "KUBECONFIG='" + kubeconfig_ + "'"; }
  /// What kubectl prints; its input is `manifest`.
  std::string kubectl(const std::string& arguments, const std::string& manifest = "") const;
  nlohmann::json get(const std::string& what) const;
  /// The API server is killed and comes back after `away` seconds.
  void restart_api_server(int away) const;
  /// The node loses its power: its kubelet and all that runs there are killed.
  void lose_node() const;
  /// It is switched on again, with nothing running on it.
  void return_node() const;
  /// A command that plays nodes without machines; `fake-nodes --help` of the kit.
  std::string fake_nodes() const;
  const std::string& image() const { return image_; }
  /// Gives the node an image of plain files, "SOURCE:PATH[:MODE]", with their shared libraries.
  void load_image(const Workspace& w, const std::string& name,
                  const std::vector<std::string>& files) const;

  /// Of a file that scripts/image made.
  void load_image_file(const Workspace& w, const std::string& file) const;

  /// A namespace with a volume claim "checkpoints", whose files lie in a directory of this machine.
  struct Space {
    std::string name;
    std::filesystem::path volume;
  };
  Space make_space(const std::string& name, const Workspace& w) const;

 private:
  void make_image();
  /// A line of bash with the kit's functions about the processes of this cluster.
  void run_in_kit(const std::string& line) const;

  Workspace workspace_;
  std::string kit_, kubeconfig_, run_, image_ = "localhost/reckon-worker:test";
};

/// Until `there`, for ten minutes at most: a machine may have fifty other things to do.
bool wait_for(const std::function<bool()>& there);

}  // namespace reckon::test
