#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "executor/http/listen_address.h"
#include "executor/serve/batcher.h"

namespace reckon {

/// Answers over HTTP/1.1, with the paths and bodies of TensorFlow Serving's REST API
/// (https://www.tensorflow.org/tfx/serving/api_rest), so that its clients work unchanged:
///
///   POST /v1/models/NAME:predict   {"instances": [[...], ...]} -> {"predictions": [...]}
///   GET  /v1/models/NAME           {"model_version_status": [...]}
///   both with /versions/N behind the name: 404 where N is not what is served
///   GET /healthz  200; 503 while no version answers and once it is ending
///   GET /livez    200
///   GET /metrics  Prometheus' text format
///
/// Until the batcher has a model, what is asked of one is answered with 503. With a token all but
/// /healthz and /livez ask for it.
///
/// An instance is the numbers of one sample, flat or in nested lists of any depth, in row-major
/// order. Connections are kept; a client that is slow or silent delays nobody else
/// (executor/http/http_server.h).
class PredictServer {
 public:
  struct Options {
    std::string name = {};  // of the model in the paths; empty: that of the first
    ListenAddress listen{"127.0.0.1", 8501};
    std::string token = {};  // that requests have to show; empty: none
  };
  /// Listens, and answers from a thread of its own. Throws std::runtime_error where the address is
  /// taken. Both must outlive it.
  PredictServer(Options options, Batcher& batcher, ServingMetrics& metrics);
  ~PredictServer();
  PredictServer(const PredictServer&) = delete;
  PredictServer& operator=(const PredictServer&) = delete;

  ListenAddress address() const;  // with the port that was found
  /// From now on /healthz answers 503, so that load balancers send nobody here any more, and each
  /// answer says that it is the last one of its connection. Who connects is answered as before.
  void begin_to_end();
  /// Answers whoever has connected, and closes the listener. A connection from which the first byte
  /// of a request has come is owed an answer; one that stays silent for a second more is closed.
  /// Returns when no connection is left, or after `patience`.
  void drain(std::chrono::seconds patience);

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace reckon
