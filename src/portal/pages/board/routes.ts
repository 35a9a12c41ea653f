import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const board = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/tasks/board",
  // `pause` has the queue whose dialog is open
  validateSearch: textSearch("view", "pause"),
  component: laterPage(() => import("./BoardPage.tsx"))
})

export const boardRoutes = [board] as const
