from braid import array_api as array_api
from braid._braid import *
from braid._braid import __version__ as __version__, asarray, nn as nn
from braid._chart import Chart as Chart, heat_map as heat_map, plot as plot
from braid._op import custom_op as custom_op
from braid._run import Run as Run, Study as Study, train as train

tensor = asarray
