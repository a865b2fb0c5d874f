// A file that several processes fill together, each its own bytes: one makes it, all write, and each one's commit()
// brings its bytes to the disk. The file is there from the start, so it belongs in a folder that is renamed once all
// have committed. The file system must let several machines write into one file (local disks, Lustre, GPFS do).
#pragma once
#include <cstdint>
#include <string>

namespace braid::io {

// Makes the file with its final size, the space reserved where the file system can. Error(output).
void make_shared_file(const std::string& path, int64_t bytes);

class SharedFile {
 public:
  explicit SharedFile(const std::string& path);  // Error(output) when it is not there
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile();

  void write(int64_t offset, const void* bytes, int64_t n);  // inside the file; Error(output) with path and cause
  void commit();                                             // fsync; nothing may be written afterwards
  // The bytes written through this handle, as a share (crc32c_share) of the checksum of the full file.
  uint32_t share() const { return share_; }

 private:
  std::string path_;
  int fd_ = -1;
  int64_t bytes_ = 0, written_ = 0;
  uint32_t share_ = 0;
};

}  // namespace braid::io
