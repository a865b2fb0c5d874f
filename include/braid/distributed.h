// Facade of distributed/ by chapter.
#pragma once
// Communicators and their transports: MPI, threads of one process.
#include "braid/distributed/comm/communicator.h"
#include "braid/distributed/comm/device_ranks.h"
#include "braid/distributed/comm/mpi_session.h"
#include "braid/distributed/comm/process_mesh.h"
#include "braid/distributed/comm/thread_transport.h"
#include "braid/distributed/job/run_on_all_ranks.h"

// How tensors are sharded over ranks.
#include "braid/distributed/sharding/partition.h"
#include "braid/distributed/sharding/shard_spec.h"

// Data, tensor and context parallel training.
#include "braid/distributed/parallel/data_parallel.h"
#include "braid/distributed/parallel/mappings.h"
#include "braid/distributed/parallel/matrix_owners.h"
#include "braid/distributed/parallel/replicated_rows.h"
#include "braid/distributed/parallel/sequence_parallel.h"
#include "braid/distributed/parallel/sequence_shard.h"
#include "braid/distributed/parallel/tensor_shards.h"
#include "braid/distributed/parallel/vocab_parallel.h"
