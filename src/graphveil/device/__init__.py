"""The device of a collection: checks a task, answers it under permanent noise, books the price and sends the report.

It needs only numpy and cryptography; its standard is docs/standard.
"""

from graphveil.device.errors import DeviceError
from graphveil.device.reports.answer import Answer, answer, answers, cost
from graphveil.device.task import Opening, Task
from graphveil.device.wire import Report, read, report

__all__ = ["Answer", "DeviceError", "Opening", "Report", "Task", "answer", "answers", "cost", "read", "report"]
