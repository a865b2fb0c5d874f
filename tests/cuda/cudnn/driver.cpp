// A CUDA driver that has no GPU, takes every kernel that is loaded and refuses everything else. cuDNN looks for it by
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

#define REFUSE(name) \
  int name() { return 100; }  // no device
REFUSE(cuCtxGetCurrent)
REFUSE(cuCtxGetDevice)
REFUSE(cuCtxGetLimit)
REFUSE(cuCtxPopCurrent)
REFUSE(cuCtxPushCurrent)
REFUSE(cuDeviceGet)
REFUSE(cuDeviceGetAttribute)
REFUSE(cuDeviceGetCount)
REFUSE(cuDevicePrimaryCtxRelease)
REFUSE(cuDevicePrimaryCtxReset)
REFUSE(cuDevicePrimaryCtxRetain)
REFUSE(cuFuncGetAttribute)
REFUSE(cuFuncSetAttribute)
REFUSE(cuGetErrorName)
REFUSE(cuGetErrorString)
REFUSE(cuGetExportTable)
REFUSE(cuKernelGetAttribute)
REFUSE(cuKernelGetFunction)
REFUSE(cuKernelSetAttribute)
REFUSE(cuLaunchCooperativeKernel)
REFUSE(cuLaunchKernel)
REFUSE(cuLaunchKernelEx)
REFUSE(cuLibraryLoadFromFile)
REFUSE(cuLinkAddData)
REFUSE(cuLinkAddData_v2)
REFUSE(cuLinkAddFile_v2)
REFUSE(cuLinkComplete)
REFUSE(cuLinkCreate)
REFUSE(cuLinkCreate_v2)
REFUSE(cuLinkDestroy)
REFUSE(cuMemcpyDtoH_v2)
REFUSE(cuModuleGetFunction)
REFUSE(cuModuleGetGlobal_v2)
REFUSE(cuModuleLoadData)
REFUSE(cuModuleLoadDataEx)
REFUSE(cuModuleLoadFatBinary)
REFUSE(cuModuleUnload)
REFUSE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSE(cuOccupancyMaxPotentialClusterSize)
REFUSE(cuStreamGetCtx)
REFUSE(cuStreamSynchronize)
REFUSE(cuTensorMapEncodeTiled)

}  // extern "C"
