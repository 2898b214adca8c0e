"""Names of routes: which say that a route is no page, and which only look so."""

from __future__ import annotations

import pytest

from sitemap_middleware.listing.names import for_operators, no_page

ACTIONS = """
/logout /sign-out /users/log_off /cache/clear /Unsubscribe /cron/nightly /newsletter/confirm /gc-cleanup
/delete /users/deleteAll /user_delete /cleanup /vacuum /prune /reindex /rebuild /toggle /toggle-theme /ack
/retry /resend /resend-email /pay /checkout /cart/add /add-to-cart /vote /like /follow /unfollow /generate
/upload /restore /test /debug /admin/run-jobs /run /trigger /sync /clearCache /clear-cache /clearcache
/sendMail /send-mail /tasks/run /task/nightly /job/nightly /signOut /SignOut /logOut /auth/logout/
/accounts/log-out /session/logoff /import /export /switch /backup/create /db/backup /server/start /db-cleanup
/admin/clean-up /purge_cache /shutdown /reset-password /payments/webhooks /stripe-webhook /reload /gc /gc_run
/delete-all-users /remove/all /refresh /refresh_token /logout-all /sign_out_everywhere /backup /stripe-webhook
/my-logout
"""

MACHINES = """
/api /api/users /v1/users /v2.0/x /rest /graphql /rpc /ajax-api /ajax-api/2.0/x /openapi /swagger /webhooks
/ws /socket.io /health /healthz /livez /readyz /ping /status /metrics /version /heartbeat /up /health/live
/app/api/v1/users /x/healthz /.git /.well-known/security /_reload-hash /-/logout /-/ready /a/_b /api/healthz
/server-status
"""

PAGES = """
/ /start /jobs /updates /status-quo /exports-to-china /about /blogout /standings /important /tasks-and-goals
/jobs/berlin /how-to-delete-your-account /help/reset-password /docs/install /docs/api /docs/start /add-ons
/addons /run-a-marathon /test-drive /like-new /share-prices /download /downloads /print /login /sign-in
/signin /register /signup /install /subscribe /start-here /open-source /importance /exporters /testing /tests
/testimonials /payments /paypal /voters /likes /followers /switchboard /upgrades /upgrade /update /create
/products/new /search /news /v2 /apidocs /rest-rooms /restaurants /wsop /pingpong /upcoming /versions
/version/2024 /status/incidents /healthcare /health-insurance /metrics-that-matter /debugging /generators
/cancel-culture /drop-shipping /clear-skies /stop-smoking /send-flowers /import-duties /export-guide
/sync-or-swim /enabled /resettlement /killer-whales /backups /backup-guide /blog/clear /news/test /help/cancel
/guides/export /flush-doors /reloading /removed-films /deleted-scenes /cleaning /prunes /recallables /tasks
/task /job /callback /a /test-results /publish-with-us /publishers /runners /enable-js /pay-gap
/checkout-our-offers /confirmations /café
"""

ACTION_VIEWS = """
delete_user logout LogoutView auth.logout run_jobs send_mail gc_cleanup users.delete Admin.purge clear_cache
add_to_cart create_user sync_now delete_view
"""

PAGE_VIEWS = """
start start_page home index blog.start jobs.index site.about view run test export updates create_page Home.get
import_guide testimonials addons how_to_delete static view3 _
"""


HEALTH_CHECKS = """
/health /healthz /livez /readyz /ping /metrics /version /heartbeat /up /status /alive /ready /stats.json
/health/live /health/ready /health/db /api/health /api/v1/healthz /_health /__health__ /_ah/health /-/ready /x/healthz
/health.html /healthcheck.php /Health /HEALTHZ/ /health-check/ /actuator/info /server-status /.health /internal/ping
"""

NO_HEALTH_CHECKS = """
/ /health/nutrition /health-insurance /healthcare /status/incidents /version/2024 /pingpong /blog/health /about
/metrics-that-matter /api /v1/users /logout /.well-known/security /ok /docs/ready /upcoming
"""


@pytest.mark.parametrize("path", HEALTH_CHECKS.split())
def test_a_health_check_needs_the_option_include(path: str) -> None:
    assert "health check or of operations" in str(for_operators(path, "view"))
    assert no_page(path, "view") is not None


@pytest.mark.parametrize("path", NO_HEALTH_CHECKS.split())
def test_other_paths_do_not_need_the_option_include(path: str) -> None:
    assert for_operators(path, "view") is None


@pytest.mark.parametrize("view", ["healthz", "ops.health_check", "HealthCheck", "livenessProbe", "readyz"])
def test_a_view_named_like_a_health_check_needs_the_option_include(view: str) -> None:
    assert "is the name of a health check" in str(for_operators("/hc", view))
    assert for_operators("/hc", f"{view}_guide") is None


@pytest.mark.parametrize("path", ACTIONS.split())
def test_a_path_named_like_an_action_is_no_page_and_the_word_is_told(path: str) -> None:
    reason = no_page(path, "view")
    assert reason is not None
    assert reason.endswith("is the name of an action")
    assert reason.split("'")[1].lower() in path.lower()


@pytest.mark.parametrize("path", MACHINES.split())
def test_an_address_for_machines_is_no_page(path: str) -> None:
    reason = no_page(path, "view")
    assert reason is not None
    assert reason.split("'")[1] in path.split("/")


@pytest.mark.parametrize("path", PAGES.split())
def test_a_path_that_only_holds_such_a_word_may_be_a_page(path: str) -> None:
    assert no_page(path, "view") is None


@pytest.mark.parametrize("view", ACTION_VIEWS.split())
def test_a_view_named_like_an_action_is_no_page(view: str) -> None:
    assert "is the name of an action" in str(no_page("/page", view))


@pytest.mark.parametrize("view", PAGE_VIEWS.split())
def test_a_view_that_only_holds_such_a_word_may_be_a_page(view: str) -> None:
    assert no_page("/page", view) is None
