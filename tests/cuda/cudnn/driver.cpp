// A CUDA driver that has no GPU, takes every kernel that is loaded and rejects everything else. cuDNN looks for it by
// name when it compiles kernels, which needs no GPU.

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuLibraryLoadData(void** library, const void* image) {
  const char* bytes = static_cast<const char*>(image);
  if (bytes[0] != 0x7f || bytes[1] != 'E' || bytes[2] != 'L' || bytes[3] != 'F') return 200;  // an invalid image
  *library = library;
  return 0;
}
int cuLibraryUnload(void*) { return 0; }
int cuLibraryGetKernel(void** kernel) {
  *kernel = kernel;
  return 0;
}

#define REJECT(name) \
  int name() { return 100; }  // no device
REJECT(cuCtxGetCurrent)
REJECT(cuCtxGetDevice)
REJECT(cuCtxGetLimit)
REJECT(cuCtxPopCurrent)
REJECT(cuCtxPushCurrent)
REJECT(cuDeviceGet)
REJECT(cuDeviceGetAttribute)
REJECT(cuDeviceGetCount)
REJECT(cuDevicePrimaryCtxRelease)
REJECT(cuDevicePrimaryCtxReset)
REJECT(cuDevicePrimaryCtxRetain)
REJECT(cuFuncGetAttribute)
REJECT(cuFuncSetAttribute)
REJECT(cuGetErrorName)
REJECT(cuGetErrorString)
REJECT(cuGetExportTable)
REJECT(cuKernelGetAttribute)
REJECT(cuKernelGetFunction)
REJECT(cuKernelSetAttribute)
REJECT(cuLaunchCooperativeKernel)
REJECT(cuLaunchKernel)
REJECT(cuLaunchKernelEx)
REJECT(cuLibraryLoadFromFile)
REJECT(cuLinkAddData)
REJECT(cuLinkAddData_v2)
REJECT(cuLinkAddFile_v2)
REJECT(cuLinkComplete)
REJECT(cuLinkCreate)
REJECT(cuLinkCreate_v2)
REJECT(cuLinkDestroy)
REJECT(cuMemcpyDtoH_v2)
REJECT(cuModuleGetFunction)
REJECT(cuModuleGetGlobal_v2)
REJECT(cuModuleLoadData)
REJECT(cuModuleLoadDataEx)
REJECT(cuModuleLoadFatBinary)
REJECT(cuModuleUnload)
REJECT(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REJECT(cuOccupancyMaxPotentialClusterSize)
REJECT(cuStreamGetCtx)
REJECT(cuStreamSynchronize)
REJECT(cuTensorMapEncodeTiled)

}  // extern "C"
