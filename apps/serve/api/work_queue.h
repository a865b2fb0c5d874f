// Threads that do work in its order: reading bodies and making tokens of texts, away from the thread that serves the
// connections.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace braid::apps::serve {

class WorkQueue {
 public:
  // max_waiting: pieces of work that have not begun; 0: no limit.
  explicit WorkQueue(int threads, size_t max_waiting = 0) : max_waiting_(max_waiting) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~WorkQueue() { stop(); }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // `work` must not throw. false: too much waits.
  bool add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return true;
    if (max_waiting_ > 0 && waiting_.size() >= max_waiting_) return false;
    waiting_.push_back(std::move(work));
    changed_.notify_one();
    return true;
  }
  // Ends the threads; work that has not begun is dropped.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      waiting_.clear();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void run() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
      if (stopped_) return;
      const std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace braid::apps::serve
