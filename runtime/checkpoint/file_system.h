#ifndef PLANC_RUNTIME_CHECKPOINT_FILE_SYSTEM_H_
#define PLANC_RUNTIME_CHECKPOINT_FILE_SYSTEM_H_

#include <atomic>
#include <cstdint>
#include <string>

namespace planc {

// The system calls by which a checkpoint reaches the disk, one function each, so that a test can
// put a failing disk under the writer. Each returns what the call returns, and -errno in place of
// an error. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // An empty file, open for writing; its descriptor.
  virtual int Create(const std::string& path) const = 0;
  // A folder, open for Sync; its descriptor.
  virtual int OpenDirectory(const std::string& path) const = 0;
  // Writes at `offset`; the number of bytes written, which may be less than `bytes`.
  virtual int64_t Write(int file, const void* data, int64_t bytes, int64_t offset) const = 0;
  // Asks that these bytes start on their way to the disk, without waiting. Only a hint.
  virtual void StartWriting(int file, int64_t offset, int64_t bytes) const = 0;
  virtual int Sync(int file) const = 0;
  virtual int Close(int file) const = 0;
  virtual int MakeDirectory(const std::string& path) const = 0;
  virtual int Rename(const std::string& from, const std::string& to) const = 0;
  // Removes a file or an empty folder.
  virtual int Remove(const std::string& path) const = 0;
  // Bytes that this process may still write into the file system of `path`, which exists; -ENOSYS
  // where the file system does not say. As the operating system says, unless a test knows better.
  virtual int64_t FreeBytes(const std::string& path) const;
};

// The operating system's.
class HostFileSystem : public FileSystem {
 public:
  int Create(const std::string& path) const override;
  int OpenDirectory(const std::string& path) const override;
  int64_t Write(int file, const void* data, int64_t bytes, int64_t offset) const override;
  void StartWriting(int file, int64_t offset, int64_t bytes) const override;
  int Sync(int file) const override;
  int Close(int file) const override;
  int MakeDirectory(const std::string& path) const override;
  int Rename(const std::string& from, const std::string& to) const override;
  int Remove(const std::string& path) const override;
};

// Another file system until Cancel; afterwards every call but Close fails with ECANCELED at once.
class CancellableFileSystem : public FileSystem {
 public:
  // `files` must outlive this object.
  explicit CancellableFileSystem(const FileSystem& files) : files_(files) {}

  void Cancel() { cancelled_ = true; }

  int Create(const std::string& path) const override;
  int OpenDirectory(const std::string& path) const override;
  int64_t Write(int file, const void* data, int64_t bytes, int64_t offset) const override;
  void StartWriting(int file, int64_t offset, int64_t bytes) const override;
  int Sync(int file) const override;
  int Close(int file) const override { return files_.Close(file); }
  int MakeDirectory(const std::string& path) const override;
  int Rename(const std::string& from, const std::string& to) const override;
  int Remove(const std::string& path) const override;

 private:
  const FileSystem& files_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_FILE_SYSTEM_H_
