"""Names of routes: which show that a route is not a page, and which only seem to."""

from __future__ import annotations

import pytest

from sitemap_middleware.listing.unsafe_routes import operations_reason, unsafe_reason

ACTIONS = """
/logout /sign-out /users/log_off /users/deleteAll /user_delete /rebuild /toggle-theme /pay /cart/add /add-to-cart /export
/admin/run-jobs /clear-cache /clearcache /clearCache /task/nightly /job/nightly /server/start /db-cleanup /newsletter/confirm
/admin/clean-up /sign_out_everywhere /Unsubscribe /auth/logout/ /reset-password /payments/webhooks /stripe-webhook /backup
/empty-trash /trash/empty /notify-admins /notify-subscribers /post-to-twitter /close-account /order/place /place-order
/email-all /init-db /door/open /payout /ban /tokens/new /accept /team/leave /kitchen/off /turn-off /turn_on_lights
/lock-door /lock/release /email-users /update-app /notifications/read /mark-all-read /buy/now /optOut /deployNow
/archive-old /close-month /wake /device/wake /tickets/escalate /open /set-language /set-locale /unlock /git-pull /forget-me
/terminar-sesion /سجل-الخروج /حذف-الحساب /साइन-आउट /हटाएं /warenkorb/leeren /konto/löschen /konto-loeschen /déconnexion
/se-deconnecter /panier-vider /cerrar-sesión /account-verwijderen /çıkış /zapłać /usuń /slet-konto /выход /退出 /ログアウト
/清空购物车 /로그아웃 /장바구니/비우기 /deaktivieren /mkdir
"""
"""Actions by kind and language: log out, delete, empty, send, pay, switch, run, change."""

MACHINES = """
/api /api/users /v1/users /v2.0/x /health /healthz /health/live /app/api/v1/users /.git /.well-known/security
/_reload-hash /-/logout /-/ready /a/_b /graphql /ws
"""

PAGES = """
/ /start /docs/install /docs/start /like-new /print /products/new /v2 /task /job /jobs/berlin /status-quo /blogout
/exports-to-china /how-to-delete-your-account /help/reset-password /clear-skies /debugging /login /callback /café /updates
/email-setup /users/email /solutions/compute /features/deploy /profile /closed /team/close-up /mail-order /order-process
/open-source /open-positions /jobs/open /account/orders /forget-me-not /lights /git-basics /release-notes /apply-now
/hilfe/abmelden /aide/supprimer /blog/删除 /如何删除账户 /как-удалить-аккаунт /como-eliminar-cuenta /wie-bestellen
/über-uns /warenkorb /zahlung /panier /livraison /carrito /pagos /salidas /carrinho /carrello /winkelwagen /koszyk
/varukorg /kundvagn /košík /sepet /корзина /カート /购物车 /장바구니 /اتصل-بنا /हमारे-बारे-में
"""
"""Pages of ordinary sites in many languages, and titles that hold a verb."""

ACTION_VIEWS = "delete_user LogoutView auth.logout send_mail clear_cache add_to_cart create_user Admin.purge initDb"
PAGE_VIEWS = "start start_page blog.start create_page import_guide testimonials how_to_delete view3 _"

HEALTH_CHECKS = """
/health /healthz /up /stats.json /health/live /health/ready /api/health /api/v1/healthz /_health /__health__ /_ah/health
/-/ready /misc/ping /app/health /health.html /healthcheck.php /HEALTHZ/ /actuator/info /server/reboot
"""
NO_HEALTH_CHECKS = """
/ /topics/health /category/health /health/nutrition /health-insurance /version/2024 /products/metrics /blog/health
/.well-known/security /api /ok /upcoming
"""


@pytest.mark.parametrize("path", HEALTH_CHECKS.split())
def test_a_health_check_needs_the_option_include(path: str) -> None:
    assert "health check or of operations" in str(operations_reason(path, "view"))
    assert unsafe_reason(path, "view") is not None


@pytest.mark.parametrize("path", NO_HEALTH_CHECKS.split())
def test_other_paths_do_not_need_the_option_include(path: str) -> None:
    assert operations_reason(path, "view") is None


@pytest.mark.parametrize("view", ["healthz", "ops.health_check", "HealthCheck", "livenessProbe", "readyz"])
def test_a_view_named_like_a_health_check_needs_the_option_include(view: str) -> None:
    assert "is the name of a health check" in str(operations_reason("/hc", view))
    assert operations_reason("/hc", f"{view}_guide") is None


@pytest.mark.parametrize("path", ACTIONS.split())
def test_action_path_is_unsafe_and_the_reason_names_the_word(path: str) -> None:
    reason = unsafe_reason(path, "view")
    assert reason is not None
    assert reason.endswith("is the name of an action")
    assert reason.split("'")[1].lower() in path.lower()


@pytest.mark.parametrize("path", MACHINES.split())
def test_api_path_is_not_a_page(path: str) -> None:
    reason = unsafe_reason(path, "view")
    assert reason is not None
    assert reason.split("'")[1] in path.split("/")


ERRORS = """
/500 /errors/500 /server-error /sentry-debug/ /debug-sentry /raise-exception /boom /divide-by-zero /simulate-error /test-500 /404.html
"""
FLOW_ENDS = """
/accounts/login_link_sent/ /order/complete /newsletter/confirmed /register/check-email /thanks /payment/cancelled /payment/success
/password-reminder-sent
"""
NO_ENDS = "/closed /blog/thanks /thanksgiving /blog/closed /news/we-are-closed /2024/500-days /600"


@pytest.mark.parametrize("path", ERRORS.split())
def test_path_of_an_error_waits_for_a_visit(path: str) -> None:
    assert str(unsafe_reason(path, "view")).endswith("is the name of an error")


@pytest.mark.parametrize("path", FLOW_ENDS.split())
def test_end_of_a_flow_waits_for_a_visit(path: str) -> None:
    assert str(unsafe_reason(path, "view")).endswith("is the end of a flow")


@pytest.mark.parametrize("path", [*PAGES.split(), *NO_ENDS.split()])
def test_a_path_that_only_holds_such_a_word_may_be_a_page(path: str) -> None:
    assert unsafe_reason(path, "view") is None


@pytest.mark.parametrize("view", ACTION_VIEWS.split())
def test_view_named_like_an_action_is_not_a_page(view: str) -> None:
    assert "is the name of an action" in str(unsafe_reason("/page", view))


@pytest.mark.parametrize("view", PAGE_VIEWS.split())
def test_a_view_that_only_holds_such_a_word_may_be_a_page(view: str) -> None:
    assert unsafe_reason("/page", view) is None
