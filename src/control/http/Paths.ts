/** Below this path, the routes of tasks have the same paths as on the status listener. */
export const tasksPath = "/admin-ui/tasks"
