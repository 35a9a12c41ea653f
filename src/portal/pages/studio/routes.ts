import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/studio",
  validateSearch: textSearch("tab"),
  component: laterPage(() => import("./StudioPage.tsx"))
})

export const studioRoutes = [list] as const
