// A CUDA driver that has no card, takes every kernel that is loaded and refuses everything else. cuDNN looks for it by
// name when it compiles kernels, which needs no card.

extern "C" {

int cuInit(unsigned) { return 0; }
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
REFUSE(cuGetErrorName)
REFUSE(cuGetErrorString)
REFUSE(cuDriverGetVersion)
REFUSE(cuDeviceGetCount)
REFUSE(cuDeviceGet)
REFUSE(cuCtxGetCurrent)
REFUSE(cuCtxGetLimit)
REFUSE(cuCtxPopCurrent)
REFUSE(cuCtxPushCurrent)
REFUSE(cuStreamGetCtx)
REFUSE(cuLinkCreate)
REFUSE(cuLinkAddData)
REFUSE(cuLinkComplete)
REFUSE(cuLinkDestroy)
REFUSE(cuLaunchKernel)
REFUSE(cuLaunchKernelEx)
REFUSE(cuLaunchCooperativeKernel)
REFUSE(cuLibraryLoadFromFile)
REFUSE(cuKernelGetAttribute)
REFUSE(cuKernelSetAttribute)
REFUSE(cuOccupancyMaxPotentialClusterSize)

}  // extern "C"
