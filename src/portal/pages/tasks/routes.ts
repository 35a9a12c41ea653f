import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/tasks",
  validateSearch: textSearch("q"),
  component: lazyRouteComponent(() => import("./TasksPage.tsx"))
})

const task = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/tasks/$taskId",
  // `at` has what is selected in every tab
  validateSearch: textSearch("tab", "at", "raw"),
  component: lazyRouteComponent(() => import("./task/TaskPage.tsx"))
})

export const tasksRoutes = [list, task] as const
