#pragma once
#include "exchange/kubernetes/pods.h"

// Inside exchange: what keeps a job's pods to themselves.
namespace reckon::kubernetes {

/// What a namespace of the job's own lets in [Kubernetes, "Pod Security Standards"]: `restricted`,
/// which all pods of ours satisfy; `baseline` where others put containers of theirs into them: the
/// operator of PyTorchJobs one without a security context, GKE for a bucket one that does not
/// satisfy it in all versions [GoogleCloudPlatform/gcsfuse, issue 1446]; `privileged` where pods
/// keep checkpoints in a directory of the node, which the others forbid. A namespace that the user
/// names may be there already, with pods of others: it warns of pods and refuses none.
Json admission_labels(const KubernetesExport& options);

/// A rule of egress: to the cluster's name servers, port 53, and to nobody else. They are the pods
/// k8s-app=kube-dns of kube-system (kube-dns and CoreDNS alike), the cache that a node may have
/// before them [Kubernetes, "Using NodeLocal DNSCache in Kubernetes Clusters"], and on GKE the
/// address of Cloud DNS [GKE, "Using Cloud DNS for GKE"].
Json name_server_egress(int minor, const ServiceRules& service);

/// Rule of egress: to the S3-compatible store that the samples are in, wherever that is.
Json store_egress(const DataSpec& data);

/// Rules of egress: HTTPS, and the servers from which the container that mounts a bucket of GKE
/// gets its token.
void add_bucket_egress(Json& egress);

/// {"protocol": "TCP", "port": 443}
Json port_rule(const char* protocol, int number);

/// A volume of the node's disk for files of the moment: what is written beyond the limit ends the
/// pod, before it fills the disk that all pods of the node share.
Json scratch_volume(bool own_program, int pods_on_node);

}  // namespace reckon::kubernetes
