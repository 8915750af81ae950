// Streams, events, graphs, and what is done in a stream's order: cache flush, hold and release.

#include <memory>

#include "agent/backends/cuda/context.h"
#include "agent/backends/cuda/kernels.h"

namespace param::cuda {

std::int32_t StreamCreate(param_ctx* ctx, param_stream** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(Enter(ctx, err));
    auto stream = std::make_unique<param_stream>();
    void* mailbox = nullptr;
    PARAM_CUDA_TRY(err, &ctx->lost, cudaHostAlloc, &mailbox, 2 * sizeof(std::uint64_t),
                   cudaHostAllocMapped);
    stream->mailbox = static_cast<std::uint64_t*>(mailbox);
    stream->mailbox[0] = 0;
    stream->mailbox[1] = 0;
    void* on_device = nullptr;
    cudaError_t error = cudaHostGetDevicePointer(&on_device, mailbox, 0);
    if (error == cudaSuccess) {
      stream->mailbox_on_device = static_cast<std::uint64_t*>(on_device);
      error = cudaStreamCreateWithFlags(&stream->stream, cudaStreamNonBlocking);
    }
    if (error != cudaSuccess) {
      cudaFreeHost(mailbox);
      return FailWith(err, "cudaStreamCreateWithFlags", error, &ctx->lost);
    }
    *out = stream.release();
    return kit::kOk;
  });
}

void StreamDestroy(param_ctx* ctx, param_stream* stream) {
  if (stream == nullptr) return;
  if (Enter(ctx, nullptr) == kit::kOk) {
    static_cast<void>(StreamRelease(ctx, stream, nullptr));
    // The mailbox must outlive the kernels that look into it.
    cudaStreamSynchronize(stream->stream);
    cudaStreamDestroy(stream->stream);
    cudaFreeHost(stream->mailbox);
    static_cast<void>(cudaGetLastError());
  }
  delete stream;
}

std::int32_t StreamSynchronize(param_ctx* ctx, param_stream* stream, param_error* err) {
  PARAM_KIT_TRY(Enter(ctx, err));
  PARAM_CUDA_TRY(err, &ctx->lost, cudaStreamSynchronize, stream->stream);
  return kit::kOk;
}

void* StreamNative(param_ctx* /*ctx*/, param_stream* stream) { return stream->stream; }

std::int32_t EventCreate(param_ctx* ctx, param_event** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(Enter(ctx, err));
    auto event = std::make_unique<param_event>();
    PARAM_CUDA_TRY(err, &ctx->lost, cudaEventCreate, &event->event);
    *out = event.release();
    return kit::kOk;
  });
}

void EventDestroy(param_ctx* ctx, param_event* event) {
  if (event == nullptr) return;
  if (Enter(ctx, nullptr) == kit::kOk) {
    cudaEventDestroy(event->event);
    static_cast<void>(cudaGetLastError());
  }
  delete event;
}

std::int32_t EventRecord(param_ctx* ctx, param_event* event, param_stream* stream,
                         param_error* err) {
  PARAM_KIT_TRY(Enter(ctx, err));
  PARAM_CUDA_TRY(err, &ctx->lost, cudaEventRecord, event->event, stream->stream);
  return kit::kOk;
}

std::int32_t EventSynchronize(param_ctx* ctx, param_event* event, param_error* err) {
  PARAM_KIT_TRY(Enter(ctx, err));
  PARAM_CUDA_TRY(err, &ctx->lost, cudaEventSynchronize, event->event);
  return kit::kOk;
}

std::int32_t StreamWaitEvent(param_ctx* ctx, param_stream* stream, param_event* event,
                             param_error* err) {
  PARAM_KIT_TRY(Enter(ctx, err));
  PARAM_CUDA_TRY(err, &ctx->lost, cudaStreamWaitEvent, stream->stream, event->event, 0);
  return kit::kOk;
}

std::int32_t EventElapsedNs(param_ctx* ctx, param_event* begin, param_event* end, double* out,
                            param_error* err) {
  PARAM_KIT_TRY(Enter(ctx, err));
  float milliseconds = 0;
  PARAM_CUDA_TRY(err, &ctx->lost, cudaEventElapsedTime, &milliseconds, begin->event, end->event);
  *out = static_cast<double>(milliseconds) * 1e6;
  return kit::kOk;
}

std::int32_t GraphBegin(param_ctx* ctx, param_stream* stream, param_error* err) {
  PARAM_KIT_TRY(Enter(ctx, err));
  PARAM_CUDA_TRY(err, &ctx->lost, cudaStreamBeginCapture, stream->stream,
                 cudaStreamCaptureModeThreadLocal);
  return kit::kOk;
}

std::int32_t GraphEnd(param_ctx* ctx, param_stream* stream, param_graph** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(Enter(ctx, err));
    auto graph = std::make_unique<param_graph>();
    cudaGraph_t captured = nullptr;
    PARAM_CUDA_TRY(err, &ctx->lost, cudaStreamEndCapture, stream->stream, &captured);
    const cudaError_t error = cudaGraphInstantiate(&graph->exec, captured, 0);
    cudaGraphDestroy(captured);
    if (error != cudaSuccess) return FailWith(err, "cudaGraphInstantiate", error, &ctx->lost);
    *out = graph.release();
    return kit::kOk;
  });
}

std::int32_t GraphLaunch(param_ctx* ctx, param_graph* graph, param_stream* stream,
                         param_error* err) {
  PARAM_KIT_TRY(Enter(ctx, err));
  PARAM_CUDA_TRY(err, &ctx->lost, cudaGraphLaunch, graph->exec, stream->stream);
  return kit::kOk;
}

void GraphDestroy(param_ctx* ctx, param_graph* graph) {
  if (graph == nullptr) return;
  if (Enter(ctx, nullptr) == kit::kOk) {
    cudaGraphExecDestroy(graph->exec);
    static_cast<void>(cudaGetLastError());
  }
  delete graph;
}

std::int32_t CacheFlush(param_ctx* ctx, param_stream* stream, std::uint64_t* bytes_out,
                        param_error* err) {
  PARAM_KIT_TRY(Enter(ctx, err));
  if (ctx->properties.l2CacheSize <= 0) {
    return kit::Fail(err, kit::kUnimplemented, "device %d does not say how large its L2 cache is",
                     ctx->device);
  }
  if (ctx->flush == nullptr) {
    // Twice the cache: whatever its replacement policy, little of what was there survives that.
    const std::size_t bytes = 2 * static_cast<std::size_t>(ctx->properties.l2CacheSize);
    PARAM_CUDA_TRY(err, &ctx->lost, cudaMalloc, &ctx->flush, bytes);
    ctx->flush_bytes = bytes;
  }
  PARAM_CUDA_TRY(err, &ctx->lost, cudaMemsetAsync, ctx->flush, 0, ctx->flush_bytes, stream->stream);
  if (bytes_out != nullptr) *bytes_out = ctx->flush_bytes;
  return kit::kOk;
}

std::int32_t StreamHold(param_ctx* ctx, param_stream* stream, param_error* err) {
  PARAM_KIT_TRY(Enter(ctx, err));
  const std::uint64_t ticket = stream->tickets + 1;
  PARAM_CUDA_TRY(err, &ctx->lost, LaunchHold, stream->mailbox_on_device,
                 stream->mailbox_on_device + 1, ticket, stream->stream);
  stream->tickets = ticket;
  return kit::kOk;
}

std::int32_t StreamRelease(param_ctx* ctx, param_stream* stream, param_error* err) {
  PARAM_KIT_TRY(Enter(ctx, err));
  __atomic_store_n(&stream->mailbox[0], stream->tickets, __ATOMIC_RELEASE);
  // The kernel gave up by itself: launches were slower than a second, or more of them were queued
  // than the driver takes. The times between events then contain launch cost.
  if (__atomic_exchange_n(&stream->mailbox[1], 0, __ATOMIC_ACQ_REL) != 0 && ctx->host != nullptr &&
      ctx->host->log != nullptr) {
    ctx->host->log(ctx->host->user, 2, "cuda: held work went ahead after a second, before release");
  }
  return kit::kOk;
}

}  // namespace param::cuda
