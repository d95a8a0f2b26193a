"""A consolidation as an activity: scope by scope, resumed where a lost worker left off."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pydantic import Field

from ...personas.errors import GMIError, StoreError
from ...personas.schema import Persona
from ...workflows.memory import Maintain, MaintenanceReport
from ..asking import Asker
from ..catalog import Catalog
from ..heartbeats import Resumable
from .maintain import Maintainer, Said
from .memories import Memories, settings_of
from .traces import Scope
from .view import scope_name
from .wording import Wording

logger = logging.getLogger(__name__)

MAX_WARNINGS = 20


class TidyProgress(Resumable):
    """How far a consolidation has come.

    Attributes:
        done: Scopes that are finished.
        last: The last of them, as kind and id; they are taken in order.
        scopes: Scopes that there are.
        at: The scope that is being tidied, as ``kind:id``.
        embedded: Memories of it that have got a vector.
        report: What was done in the finished scopes.
    """

    done: int = 0
    last: tuple[str, str] | None = None
    scopes: int = 0
    at: str = ""
    embedded: int = 0
    report: MaintenanceReport = Field(default_factory=MaintenanceReport)

    def finish(self, scope: Scope, report: MaintenanceReport) -> None:
        """Take in what was done in a scope."""
        self.done += 1
        self.last = (scope.kind, scope.id)
        self.at, self.embedded = "", 0
        self.report = added(self.report, report)


class Consolidation:
    """Tidies the memories of personas.

    Args:
        memories: The worker's long-term memory.
        catalog: The personas.
        asker: Asks the models that personas' settings name; without it no text is made up.
    """

    def __init__(self, memories: Memories, catalog: Catalog, asker: Asker | None = None) -> None:
        self._memories = memories
        self._catalog = catalog
        self._asker = asker

    async def maintain(
        self, request: Maintain, progress: TidyProgress, beat: Callable[[], None]
    ) -> MaintenanceReport:
        """Tidy all scopes of a persona, those that are finished excepted.

        Args:
            request: Whose memories, and when.
            progress: How far earlier attempts came; it is kept up to date.
            beat: Called after each scope that is finished.

        Raises:
            PersonaNotFoundError: This worker does not know the persona.
            ConfigurationError: The embedding model that it names is not known here.
            StoreError: The store does not answer.
        """
        persona = (await self._catalog.personas()).get(request.persona)
        settings = settings_of(persona)
        if not settings.enabled:
            warning = f"MEMORY_OFF: the settings of {persona.id!r} turn its memory off."
            return MaintenanceReport(persona=persona.id, warnings=[warning])
        maintainer = Maintainer(
            self._memories.store,
            persona.id,
            settings,
            persona.hexaco,
            self._memories.engine(settings).embedder,
            self._wording(persona, settings.consolidation.model),
        )
        # In an order that does not depend on the database's collation.
        scopes = sorted(await maintainer.scopes())
        progress.scopes = len(scopes)

        def said(embedded: int) -> None:
            progress.embedded = embedded

        for scope in scopes:
            if progress.last is not None and (scope.kind, scope.id) <= progress.last:
                continue
            progress.at, progress.embedded = scope_name(scope), 0
            report = await self._tidied(maintainer, scope, request, said)
            progress.finish(scope, report)
            beat()
        proposals = await maintainer.suggest()
        return progress.report.model_copy(update={"persona": persona.id, "proposals": proposals})

    async def _tidied(
        self, maintainer: Maintainer, scope: Scope, request: Maintain, said: Said
    ) -> MaintenanceReport:
        """What was done in a scope; one that cannot be tidied does not keep the others from it."""
        try:
            return await maintainer.tidy(scope, request.now, request.run, said)
        except StoreError:
            raise
        except Exception as error:
            # Asking again would end the same way, and no scope after this one would be reached.
            logger.exception("A scope of %s was not tidied", request.persona)
            why = error.message if isinstance(error, GMIError) else type(error).__name__
            warning = f"SCOPE_NOT_TIDIED: {scope_name(scope)} was left as it is: {why}"
            return MaintenanceReport(warnings=[warning])

    def _wording(self, persona: Persona, model: str | None) -> Wording | None:
        if model is None or self._asker is None:
            return None
        return Wording(self._asker, persona, model)


def added(one: MaintenanceReport, other: MaintenanceReport) -> MaintenanceReport:
    """Two reports as one."""
    counts = {
        name: getattr(one, name) + getattr(other, name)
        for name, value in one
        if isinstance(value, int)
    }
    return one.model_copy(
        update={
            **counts,
            "usage": one.usage + other.usage,
            "warnings": [*one.warnings, *other.warnings][:MAX_WARNINGS],
        }
    )
