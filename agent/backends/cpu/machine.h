#pragma once
// Facts about the processors, from the kernel's files. What is unknown is empty or 0.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace param::cpu {

std::string ProcessorName();
// Processors this thread may run on.
std::vector<int> AllowedProcessors();
// The memory of the machine, or the limit put on this process's group where that is less.
std::int64_t MemoryBytes();
// All last-level caches that the allowed processors use, together; 32 MiB where the kernel does not
// say.
std::int64_t LastLevelCacheBytes();
// Mean clock of the allowed processors as the kernel sees it, Hz; 0 when unknown.
double ClockHz();
// Frequency governor of the first allowed processor; "" when there is none.
std::string Governor();

// Runs `body(i)` for i below `threads`, each on its own thread, this one among them.
void Parallel(int threads, const std::function<void(int)>& body);

}  // namespace param::cpu
