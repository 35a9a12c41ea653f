import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/tasks",
  validateSearch: textSearch("q"),
  component: laterPage(() => import("./TasksPage.tsx"))
})

const cancellations = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/tasks/cancellations",
  validateSearch: textSearch(),
  component: laterPage(() => import("./cancellations/CancellationsPage.tsx"))
})

const cancellation = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/tasks/cancellations/$id",
  validateSearch: textSearch(),
  component: laterPage(() => import("./cancellations/CancellationPage.tsx"))
})

const task = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/tasks/$taskId",
  // `at` has what is selected in every tab
  validateSearch: textSearch("tab", "at", "raw"),
  component: laterPage(() => import("./task/TaskPage.tsx"))
})

export const tasksRoutes = [list, cancellations, cancellation, task] as const
