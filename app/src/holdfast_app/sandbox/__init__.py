"""What a server gives on its machine to an agent process of one principal (H11).

How the process is started, as another user, in a sandbox or by a command, with a home, an environment and limits of its
own; and the files and commands that it may use in its session's directories. Who the principals are, what sessions are
and how agents are spoken to is not known here.
"""

from holdfast_app.sandbox.hosting import Hosting, UseOf
from holdfast_app.sandbox.launcher import Launcher, Prepared, PrincipalSettings
from holdfast_app.sandbox.limits import ProcessLimits

__all__ = ["Hosting", "Launcher", "Prepared", "PrincipalSettings", "ProcessLimits", "UseOf"]
