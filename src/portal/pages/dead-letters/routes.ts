import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/dead-letters",
  validateSearch: textSearch("tab", "state", "queue_name", "source_queue_name", "reason", "exception_type", "task_id"),
  component: laterPage(() => import("./DeadLettersPage.tsx"))
})

const group = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/dead-letters/group",
  // without `exception_type`, the group of letters that have none
  validateSearch: textSearch("queue_name", "reason", "exception_type"),
  component: laterPage(() => import("./groups/GroupPage.tsx"))
})

const replay = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/dead-letters/replays/$replayId",
  validateSearch: textSearch(),
  component: laterPage(() => import("./replays/ReplayPage.tsx"))
})

const letter = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/dead-letters/$dlqId",
  validateSearch: textSearch("tab"),
  component: laterPage(() => import("./letter/LetterPage.tsx"))
})

export const deadLettersRoutes = [list, group, replay, letter] as const
