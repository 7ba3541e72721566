#pragma once
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/scenario.h"

// How the processes of a job find each other: the variables that TensorFlow, PyTorch's launcher and
// JAX read. The same in a cluster and on one machine.
namespace reckon {

struct JobWiring {
  int workers = 1, servers = 0;
  bool chief = false;                  // TensorFlow: rank 0 is the chief, not a worker
  int devices = 0;                     // of a worker
  std::vector<std::string> addresses;  // host:port, workers first, then servers
};

/// The number of a process may be text that its surroundings replace: "$(RECKON_INDEX)".
using Variables = std::vector<std::pair<std::string, std::string>>;

/// TF_CONFIG of a task: {"cluster": {...}, "task": {"type": "worker", "index": 1}}
/// [TensorFlow, tf.distribute.cluster_resolver.TFConfigClusterResolver].
std::string tf_config(const JobWiring& job, const std::string& type, const std::string& index);

/// RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT of a worker [PyTorch, torch.distributed, environment
/// variable initialisation].
Variables rank_variables(const JobWiring& job, const std::string& rank);

/// What torchrun reads for its options (PET_*), and the coordinator, size and number of
/// jax.distributed.initialize.
Variables launcher_variables(const JobWiring& job, const std::string& rank);

/// What a container runs. "--job-dir" without a value, as programs of AI Platform take it, gets
/// $(RECKON_JOB_DIR), the directory where the job keeps its checkpoints; so may any other word.
std::vector<std::string> program_words(const ContainerSpec& container);

/// "$(NAME)" by the variable's value, as Kubernetes does it in a command; of a variable that is not
/// there the text stays, and "$$(NAME)" is "$(NAME)" [Kubernetes, "Define a command and
/// arguments"].
std::string with_variables(const std::string& text, const Variables& variables);

}  // namespace reckon
